// Reports external memory to the garbage collector, and finds out which objects were collected.
#pragma once

#include <napi.h>

namespace shoal {

void DefineCollected(Napi::Env env, Napi::Object exports);

}  // namespace shoal
