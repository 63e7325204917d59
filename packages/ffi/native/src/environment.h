// The addon's state for one JavaScript thread (the main thread or a worker).
#pragma once

#include <napi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "mailbox.h"

namespace shoal {

struct BoundCall;
struct Recording;

// Layout of the block: slots of integer arguments, then floating-point registers, then room for a returned structure.
constexpr int kSlots = 48;
constexpr int kContextSlot = 46;  // in: the context of the next call; out, of enterContext: the previous context
constexpr int kResultSlot = 47;   // out: a 64-bit result, or the bits of a floating-point result
constexpr int kFloatSlot = 48;    // in: one word per floating-point register; a float is in the low half
constexpr int kFloats = 8;
constexpr int kStructureSlot = kFloatSlot + kFloats;
constexpr int kStructureWords = 16;
constexpr int kBlockWords = kStructureSlot + kStructureWords;

struct Environment {
  Environment();
  ~Environment();
  static Environment& Of(Napi::Env env);

  uint64_t* block = nullptr;                              // the shared argument block, kBlockWords words
  Recording* recording = nullptr;                         // set while JavaScript records calls for another thread
  Recording* paused = nullptr;                            // holds the recording while a nested call runs at once
  std::map<uint32_t, std::unique_ptr<Recording>> at_end;  // calls to make when the thread ends, by number
  uint32_t last_at_end = 0;
  std::set<int> descriptors;     // closed when the thread ends
  std::set<std::string> offers;  // withdrawn when the thread ends
  Napi::Reference<Napi::ArrayBuffer> block_buffer;
  std::vector<std::unique_ptr<BoundCall>> calls;
  // objects that JavaScript watches for collection, by number; weak
  std::unordered_map<int64_t, Napi::ObjectReference> watched;
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  Napi::FunctionReference on_wait;      // (id, status)
  Napi::FunctionReference on_callback;  // (id, status)
  Napi::FunctionReference on_job;       // (id, contextStatus, results)
};

}  // namespace shoal
