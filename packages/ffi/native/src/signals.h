// The handlers of SIGINT and SIGTERM.
#pragma once

#include <napi.h>

namespace shoal {

void DefineSignals(Napi::Env env, Napi::Object exports);

}  // namespace shoal
