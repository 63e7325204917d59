// Unix sockets that carry file descriptors to other processes. Linux and macOS only.
#pragma once

#include <napi.h>

namespace shoal {

struct Environment;

void DefineDescriptors(Napi::Env env, Napi::Object exports);

// Closes the descriptors that the thread registered with closeAtEnd() and has not closed.
void CloseDescriptors(Environment& environment);

}  // namespace shoal
