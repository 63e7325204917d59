#pragma once

#include <napi.h>

namespace shoal {

void DefineExit(Napi::Env env, Napi::Object exports);

}  // namespace shoal
