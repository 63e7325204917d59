// The system loader: opens libraries, looks up symbols, and finds the file that a library was loaded from.
#pragma once

#include <napi.h>

namespace shoal {

void DefineLibrary(Napi::Env env, Napi::Object exports);

}  // namespace shoal
