// The system loader: opening libraries, looking up symbols, saying where a library came from.
#pragma once

#include <napi.h>

namespace shoal {

void DefineLibrary(Napi::Env env, Napi::Object exports);

}  // namespace shoal
