// Unix sockets that carry file descriptors to other processes. Linux and macOS only.
#pragma once

#include <napi.h>

namespace shoal {

void DefineDescriptors(Napi::Env env, Napi::Object exports);

}  // namespace shoal
