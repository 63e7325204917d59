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
  int result_bytes;  // if the result is a structure
};

struct BoundCall {
  void* function;
  Environment* environment;
  Signature signature;
};

// One recorded call. Everything it needs is copied, so it can run on another thread.
struct RecordedCall {
  void* function;
  Signature signature;
  uint64_t context;  // made current for this call; 0 keeps the current context
  uint64_t arguments[kSlots];
  uint64_t floats[kFloats];
};

struct Recording {
  std::vector<RecordedCall> calls;
  std::vector<uint64_t> repeats;  // the last call is repeated with each of these as its first argument
  std::vector<MemoryHandle> kept;
};

// The result of a recorded call, as the bits of the result register.
struct CallResult {
  Result kind;
  uint64_t word = 0;
  std::vector<uint64_t> structure;
  int structure_bytes = 0;

  // The status, if the function returns one; 0 for other functions.
  int64_t Status() const;
  Napi::Value ToValue(Napi::Env env) const;
};

// Calls the function with the recorded arguments, in the recorded context. If the context cannot be made current,
// returns the library's code. A function that returns a status then has this code as its result, too.
int Invoke(const RecordedCall& call, CallResult* result);

// Makes all calls, even after one of them fails. Returns the first status that is neither 0 nor `ignored`.
int64_t Make(const Recording& recording, int64_t ignored);

void DefineCalls(Napi::Env env, Napi::Object exports);

}  // namespace shoal
