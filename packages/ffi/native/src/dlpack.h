// Tensors for exchange with other libraries: the structs of DLPack, with a deleter that any thread may call.
#pragma once

#include <napi.h>

namespace shoal {

void DefineDLPack(Napi::Env env, Napi::Object exports);

}  // namespace shoal
