// How the process ends.
#pragma once

#include <napi.h>

namespace shoal {

// Whether the main thread is past its JavaScript: what it ends now ends with the process.
bool ProcessIsEnding();

void DefineExit(Napi::Env env, Napi::Object exports);

}  // namespace shoal
