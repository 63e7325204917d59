// Memory that JavaScript and native threads share. It lives until the last of them drops its reference.
#pragma once

#include <napi.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shoal {

using MemoryHandle = std::shared_ptr<void>;

// The memory that was allocated for JavaScript at this address, or null.
MemoryHandle FindMemory(uint64_t address);

void DefineMemory(Napi::Env env, Napi::Object exports);

}  // namespace shoal
