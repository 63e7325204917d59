// C functions bound to JavaScript functions that take their arguments from the shared block.
#pragma once

#include <napi.h>

#include <cstdint>
#include <vector>

#include "environment.h"
#include "memory.h"

namespace shoal {

enum class Result : uint8_t {
  kInt32,
  kUint32,
  kVoid,
  kWord,
  kSignedWord,
  kFloat,
  kDouble,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kBool,
  kStructure
};

struct Signature {
  int slots;   // integer words
  int floats;  // floating-point registers
  Result result;
  int result_bytes;  // of a structure
};

struct BoundCall {
  void* function;
  Environment* environment;
  Signature signature;
};

// One recorded call: everything it needs is copied, so it can run on another thread.
struct RecordedCall {
  void* function;
  Signature signature;
  uint64_t context;  // made current for this call; 0: whatever is current
  uint64_t arguments[kSlots];
  uint64_t floats[kFloats];
};

struct Recording {
  std::vector<RecordedCall> calls;
  std::vector<uint64_t> repeats;  // the last call is made again with each of these as its first argument
  std::vector<MemoryHandle> kept;
};

// What a recorded call returned, as the bits of the result's register.
struct CallResult {
  Result kind;
  uint64_t word = 0;
  std::vector<uint64_t> structure;
  int structure_bytes = 0;

  // The status of a function that returns one; 0 for other functions.
  int64_t Status() const;
  Napi::Value ToValue(Napi::Env env) const;
};

// Calls with the recorded arguments, in their context. Returns the library's code when the context cannot be made
// current, which a function that returns a status has returned then too.
int Invoke(const RecordedCall& call, CallResult* result);

// Makes all calls, those behind one that fails too. Returns the first status that is neither 0 nor `ignored`.
int64_t Make(const Recording& recording, int64_t ignored);

void DefineCalls(Napi::Env env, Napi::Object exports);

}  // namespace shoal
