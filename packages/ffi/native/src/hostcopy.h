// Copies between host memory and a page-locked block that a stream makes when its turn comes.
#pragma once

#include <napi.h>

namespace shoal {

void DefineHostCopy(Napi::Env env, Napi::Object exports);

}  // namespace shoal
