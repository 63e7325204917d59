// What the addon holds for one JavaScript thread (the main thread or a worker).
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

// The block: slots of integer arguments, then what other registers take, then room for a structure that is returned.
constexpr int kSlots = 48;
constexpr int kContextSlot = 46;  // in: the context of the next call; out of enterContext: the one that was current
constexpr int kResultSlot = 47;   // out: a 64-bit result, or the bits of a floating-point one
constexpr int kFloatSlot = 48;    // in: one word for each floating-point register; a float stands in the low half
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
  Recording* paused = nullptr;                            // the recording, while a nested call is made at once
  std::map<uint32_t, std::unique_ptr<Recording>> at_end;  // calls to be made when the thread ends, by number
  uint32_t last_at_end = 0;
  std::set<int> descriptors;     // closed when the thread ends
  std::set<std::string> offers;  // withdrawn when the thread ends
  Napi::Reference<Napi::ArrayBuffer> block_buffer;
  std::vector<std::unique_ptr<BoundCall>> calls;
  std::unordered_map<int64_t, Napi::ObjectReference> watched;  // objects whose end JavaScript asks for, by number; weak
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  Napi::FunctionReference on_wait;      // (id, status)
  Napi::FunctionReference on_callback;  // (id, status)
  Napi::FunctionReference on_job;       // (id, contextStatus, results)
};

}  // namespace shoal
