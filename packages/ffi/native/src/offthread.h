// Recorded calls that run in order on a native thread, with a context current on that thread.
#pragma once

#include <napi.h>

namespace shoal {

void DefineOffThread(Napi::Env env, Napi::Object exports);

}  // namespace shoal
