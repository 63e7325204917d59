// The end of the process.
#pragma once

#include <napi.h>

namespace shoal {

// True when the main thread has finished its JavaScript. What it still releases, the end of the process releases
// anyway.
bool ProcessIsEnding();

void DefineExit(Napi::Env env, Napi::Object exports);

}  // namespace shoal
