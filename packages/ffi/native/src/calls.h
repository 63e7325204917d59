// C functions bound to JavaScript functions that take their arguments from the shared block.
#pragma once

#include <napi.h>

#include <cstdint>
#include <vector>

#include "environment.h"
#include "memory.h"

namespace shoal {

enum class Result : uint8_t { kInt32, kUint32, kVoid, kWord, kFloat, kDouble };

struct BoundCall {
  void* function;
  Environment* environment;
  int slots;
  Result result;
};

// One recorded call: everything it needs is copied, so it can run on another thread.
struct RecordedCall {
  void* function;
  int slots;
  Result result;
  uint64_t context;  // made current for this call; 0: whatever is current
  uint64_t arguments[kSlots];
};

struct Recording {
  std::vector<RecordedCall> calls;
  std::vector<MemoryHandle> kept;
};

// Calls with the recorded arguments, in their context, and returns the 32-bit status; 0 for a function that returns nothing.
int64_t Invoke(const RecordedCall& call);

void DefineCalls(Napi::Env env, Napi::Object exports);

}  // namespace shoal
