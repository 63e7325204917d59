#include "hostcopy.h"

#ifdef __linux__
#include <sys/uio.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "memory.h"
#include "threads.h"

namespace shoal {
namespace {

// Lives as long as the stream may still call for a part, and as long as JavaScript holds it.
struct HostCopy {
  uint8_t* block;
  uint8_t* memory;
  size_t left;
  size_t part;
  bool is_upload;
  // Memory of ours that is copied to: it outlives the JavaScript thread.
  MemoryHandle kept;
  std::shared_ptr<HostCopy> held_by_stream;
};

// Reads memory of a JavaScript array, which another thread may let go of meanwhile: the kernel copies what is there, where a
// copy of our own would end the process.
bool CopyFromArray(void* target, const void* source, size_t bytes) {
#ifdef __linux__
  const iovec to{target, bytes};
  const iovec from{const_cast<void*>(source), bytes};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(bytes);
#else
  (void)target, (void)source, (void)bytes;
  return false;
#endif
}

// CUhostFn: copies the next part.
void CopyPart(void* data) {
  auto* copy = static_cast<HostCopy*>(data);
  const size_t bytes = std::min(copy->part, copy->left);
  if (copy->is_upload) {
    CopyFromArray(copy->block, copy->memory, bytes);
  } else {
    std::memcpy(copy->memory, copy->block, bytes);
  }
  copy->memory += bytes;
  copy->left -= bytes;
  if (copy->left == 0) auto last = std::move(copy->held_by_stream);
}

using Held = Napi::External<std::shared_ptr<HostCopy>>;

uint64_t Address(const Napi::Value& value) {
  bool lossless = false;
  return value.As<Napi::BigInt>().Uint64Value(&lossless);
}

// startHostCopy(block, memory, bytes, part, isUpload) → what stands for the copy, for the two below
Napi::Value Start(const Napi::CallbackInfo& info) {
  const uint64_t memory = Address(info[1]);
  auto copy = std::make_shared<HostCopy>();
  copy->block = reinterpret_cast<uint8_t*>(Address(info[0]));
  copy->memory = reinterpret_cast<uint8_t*>(memory);
  copy->left = static_cast<size_t>(info[2].As<Napi::Number>().DoubleValue());
  copy->part = static_cast<size_t>(info[3].As<Napi::Number>().DoubleValue());
  copy->is_upload = info[4].As<Napi::Boolean>();
  if (!copy->is_upload) copy->kept = FindMemory(memory);
  copy->held_by_stream = copy;
  return Held::New(info.Env(), new std::shared_ptr<HostCopy>(std::move(copy)),
                   [](Napi::Env, std::shared_ptr<HostCopy>* held) { delete held; });
}

// hostCopyData(copy) → the user data of the host function
Napi::Value Data(const Napi::CallbackInfo& info) {
  return Napi::BigInt::New(info.Env(), reinterpret_cast<uint64_t>(info[0].As<Held>().Data()->get()));
}

// endHostCopy(copy): the stream calls for no more parts, whether it called for all or not. To give much memory back takes the
// system a while, which another thread may spend.
void End(const Napi::CallbackInfo& info) {
  HostCopy& copy = **info[0].As<Held>().Data();
  if (copy.kept != nullptr) RunOnThread([kept = std::move(copy.kept)] {});
  copy.held_by_stream.reset();
}

// A sandbox may forbid the call of the kernel.
bool CanReadArrays() {
  const char from = 1;
  char to = 0;
  return CopyFromArray(&to, &from, 1) && to == 1;
}

}  // namespace

void DefineHostCopy(Napi::Env env, Napi::Object exports) {
  static const bool can_read_arrays = CanReadArrays();
  exports.Set("canReadArrays", Napi::Boolean::New(env, can_read_arrays));
  exports.Set("copyPartAddress", Napi::BigInt::New(env, reinterpret_cast<uint64_t>(&CopyPart)));
  exports.Set("startHostCopy", Napi::Function::New(env, Start, "startHostCopy"));
  exports.Set("hostCopyData", Napi::Function::New(env, Data, "hostCopyData"));
  exports.Set("endHostCopy", Napi::Function::New(env, End, "endHostCopy"));
}

}  // namespace shoal
