#include "environment.h"

#include "calls.h"

namespace shoal {

Environment::Environment() = default;

Environment::~Environment() {
  delete recording;
  delete paused;
}

Environment& Environment::Of(Napi::Env env) { return *env.GetInstanceData<Environment>(); }

}  // namespace shoal
