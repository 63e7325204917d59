// Copies between host memory and a page-locked block, made when the stream reaches them.
#pragma once

#include <napi.h>

namespace shoal {

void DefineHostCopy(Napi::Env env, Napi::Object exports);

}  // namespace shoal
