#include "hostcopy.h"

#ifdef __linux__
#include <sys/uio.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>

#include "memory.h"
#include "threads.h"

namespace shoal {
namespace {

// Lives while the stream may still call for a part, and while JavaScript holds it.
struct HostCopy {
  uint8_t* block;  // room for two parts, which alternate
  uint8_t* memory;
  size_t bytes;
  size_t part;
  size_t threads;
  bool is_upload;
  size_t called = 0;  // bytes of the parts that the stream has asked for
  // Keeps the target alive if the addon allocated it, because the copy can outlive the JavaScript thread.
  MemoryHandle kept;
  std::shared_ptr<HostCopy> held_by_stream;

  std::mutex mutex;
  std::condition_variable done;
  size_t at_work = 0;  // threads that are copying the current part
};

// Reads a JavaScript array that another thread may free at the same time. The kernel does the copy, because it returns
// an error for a bad address. A copy by memcpy would crash the process.
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

// One thread copies less than this before another thread has woken up.
constexpr size_t kLeastShare = 512 * 1024;
constexpr size_t kPage = 4096;

void CopyShare(const HostCopy& copy, size_t start, size_t bytes) {
  uint8_t* block = copy.block + start % (2 * copy.part);
  if (copy.is_upload) {
    CopyFromArray(block, copy.memory + start, bytes);
  } else {
    std::memcpy(copy.memory + start, block, bytes);
  }
}

// Starts the copy of the part at `start` on other threads. A single thread copies at a fraction of the speed of a GPU's
// link.
void BeginPart(HostCopy& copy, size_t start) {
  const size_t end = std::min(start + copy.part, copy.bytes);
  const size_t shares = std::max<size_t>(1, std::min(copy.threads, (end - start) / kLeastShare));
  const size_t share = ((end - start) / shares + kPage) / kPage * kPage;
  for (; start < end; start += std::min(share, end - start)) {
    const size_t length = std::min(share, end - start);
    {
      std::lock_guard<std::mutex> lock(copy.mutex);
      ++copy.at_work;
    }
    const auto work = [&copy, start, length] {
      CopyShare(copy, start, length);
      std::lock_guard<std::mutex> lock(copy.mutex);
      if (--copy.at_work == 0) copy.done.notify_all();
    };
    if (!RunOnThread(work)) work();
  }
}

void WaitForPart(HostCopy& copy) {
  std::unique_lock<std::mutex> lock(copy.mutex);
  copy.done.wait(lock, [&] { return copy.at_work == 0; });
}

// The CUhostFn. Upload: when it returns, the next part is in the block. The part after it is being copied while the
// device reads this one. Download: when it returns, the part that arrived is being copied to its target. The last call
// returns when all parts are copied.
void CopyPart(void* data) {
  auto& copy = *static_cast<HostCopy*>(data);
  const size_t start = copy.called;
  copy.called = std::min(start + copy.part, copy.bytes);
  const bool is_last = copy.called == copy.bytes;
  if (copy.is_upload && start == 0) BeginPart(copy, 0);
  WaitForPart(copy);
  if (!copy.is_upload) BeginPart(copy, start);
  if (copy.is_upload && !is_last) BeginPart(copy, copy.called);
  if (!is_last) return;
  WaitForPart(copy);
  auto last = std::move(copy.held_by_stream);
}

using Held = Napi::External<std::shared_ptr<HostCopy>>;

uint64_t Address(const Napi::Value& value) {
  bool lossless = false;
  return value.As<Napi::BigInt>().Uint64Value(&lossless);
}

// startHostCopy(block, memory, bytes, part, isUpload, threads) → an External, the `copy` of the two functions below
Napi::Value Start(const Napi::CallbackInfo& info) {
  const uint64_t memory = Address(info[1]);
  auto copy = std::make_shared<HostCopy>();
  copy->block = reinterpret_cast<uint8_t*>(Address(info[0]));
  copy->memory = reinterpret_cast<uint8_t*>(memory);
  copy->bytes = static_cast<size_t>(info[2].As<Napi::Number>().DoubleValue());
  copy->part = static_cast<size_t>(info[3].As<Napi::Number>().DoubleValue());
  copy->is_upload = info[4].As<Napi::Boolean>();
  copy->threads = static_cast<size_t>(info[5].As<Napi::Number>().DoubleValue());
  if (!copy->is_upload) copy->kept = FindMemory(memory);
  copy->held_by_stream = copy;
  return Held::New(info.Env(), new std::shared_ptr<HostCopy>(std::move(copy)),
                   [](Napi::Env, std::shared_ptr<HostCopy>* held) { delete held; });
}

// hostCopyData(copy) → the user data of the host function
Napi::Value Data(const Napi::CallbackInfo& info) {
  return Napi::BigInt::New(info.Env(), reinterpret_cast<uint64_t>(info[0].As<Held>().Data()->get()));
}

// endHostCopy(copy): the stream will not ask for more parts, whether or not it has asked for all. Another thread frees
// the memory, because returning a lot of memory to the system takes long.
void End(const Napi::CallbackInfo& info) {
  HostCopy& copy = **info[0].As<Held>().Data();
  // A part that is no longer needed may still be in progress. Wait, because the block and the memory get new owners.
  WaitForPart(copy);
  if (copy.kept != nullptr) RunOnThread([kept = std::move(copy.kept)] {});
  copy.held_by_stream.reset();
}

// A sandbox may forbid the system call.
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
