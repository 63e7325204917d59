// Memory that both JavaScript and native threads use, alive until the last of them lets go.
#pragma once

#include <napi.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shoal {

using MemoryHandle = std::shared_ptr<void>;

// The memory allocated for JavaScript at this address, or null.
MemoryHandle FindMemory(uint64_t address);

void DefineMemory(Napi::Env env, Napi::Object exports);

}  // namespace shoal
