// What the garbage collector is told, and what it has taken.
#pragma once

#include <napi.h>

namespace shoal {

void DefineCollected(Napi::Env env, Napi::Object exports);

}  // namespace shoal
