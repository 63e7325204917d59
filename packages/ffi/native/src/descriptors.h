// Unix sockets that carry file descriptors to other processes. Linux and macOS only.
#pragma once

#include <napi.h>

namespace shoal {

struct Environment;

void DefineDescriptors(Napi::Env env, Napi::Object exports);

// What the thread has left open of what is its own.
void CloseDescriptors(Environment& environment);

}  // namespace shoal
