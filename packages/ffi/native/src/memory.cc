#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "callbacks.h"

namespace shoal {
namespace {

struct Hold;

struct Allocation {
  MemoryHandle memory;
  Hold* hold;
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<uint64_t, Allocation> memories;
};

// Never destroyed, because threads may still release memory while the process exits.
Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

[[noreturn]] void ThrowNoExternal(Napi::Env env) {
  Napi::Error error = Napi::Error::New(env, "this JavaScript engine does not allow ArrayBuffers over native memory");
  error.Set("code", Napi::String::New(env, "SHOAL_NO_EXTERNAL_BUFFERS"));
  throw error;
}

Napi::Value ExternalBuffer(Napi::Env env, void* address, size_t length, napi_finalize finalize, void* hint) {
  napi_value buffer = nullptr;
  const napi_status status = napi_create_external_arraybuffer(env, address, length, finalize, hint, &buffer);
  if (status != napi_ok) ThrowNoExternal(env);
  return Napi::Value(env, buffer);
}

uint64_t AddressArgument(const Napi::CallbackInfo& info, size_t index) {
  bool lossless = false;
  return info[index].As<Napi::BigInt>().Uint64Value(&lossless);
}

// The finalizer data of an allocation's ArrayBuffer.
struct Hold {
  MemoryHandle memory;
};

// The collector has freed the ArrayBuffer and every buffer that its memory was transferred to. If JavaScript released
// the memory earlier, `hold` is empty, because the address may belong to another allocation now.
void CollectMemory(napi_env, void* address, void* hint) {
  auto* hold = static_cast<Hold*>(hint);
  if (hold->memory != nullptr) {
    Registry& registry = TheRegistry();
    std::lock_guard<std::mutex> lock(registry.mutex);
    registry.memories.erase(reinterpret_cast<uint64_t>(address));
  }
  delete hold;
}

// With pages of 2 MiB, the first write to a large block takes a third of the time. A system without large pages ignores
// the hint.
void PreferLargePages(void* whole, size_t length) {
  constexpr uint64_t kPage = 2 << 20;
  const uint64_t start = (reinterpret_cast<uint64_t>(whole) + kPage - 1) / kPage * kPage;
  const uint64_t end = (reinterpret_cast<uint64_t>(whole) + length) / kPage * kPage;
  if (end > start) madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

// allocate(bytes) → { buffer, address }
Napi::Value Allocate(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const double requested = info[0].As<Napi::Number>().DoubleValue();
  const size_t length = static_cast<size_t>(requested);
  // The system zeroes the pages of a large block when they are first touched. Writing zeros here would block the
  // thread.
  constexpr size_t kAlignment = 64;
  const size_t padded = (length + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
  void* whole = std::calloc(1, padded + kAlignment);
  if (whole == nullptr) throw Napi::RangeError::New(env, "out of host memory");
  PreferLargePages(whole, padded);
  const uint64_t address = (reinterpret_cast<uint64_t>(whole) + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = reinterpret_cast<void*>(address);
  MemoryHandle handle(std::shared_ptr<void>(whole, std::free), memory);
  auto* hold = new Hold{handle};
  Napi::Value buffer;
  try {
    buffer = ExternalBuffer(env, memory, length, CollectMemory, hold);
  } catch (...) {
    delete hold;
    throw;
  }
  {
    Registry& registry = TheRegistry();
    std::lock_guard<std::mutex> lock(registry.mutex);
    registry.memories[address] = Allocation{handle, hold};
  }
  Napi::Object result = Napi::Object::New(env);
  result.Set("buffer", buffer);
  result.Set("address", Napi::BigInt::New(env, address));
  return result;
}

// release(address): JavaScript has detached the buffer and drops its reference. The memory is freed when the last
// recorded call that uses it has run.
void ReleaseMemory(const Napi::CallbackInfo& info) {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  auto found = registry.memories.find(AddressArgument(info, 0));
  if (found == registry.memories.end()) return;
  found->second.hold->memory = nullptr;
  registry.memories.erase(found);
}

// view(address, bytes, callback) → an ArrayBuffer. The callback is called when no ArrayBuffer reaches the memory any
// more.
Napi::Value View(const Napi::CallbackInfo& info) {
  const size_t length = static_cast<size_t>(info[1].As<Napi::Number>().DoubleValue());
  void* callback = reinterpret_cast<void*>(static_cast<uint64_t>(info[2].As<Napi::Number>().Int64Value()));
  return ExternalBuffer(
      info.Env(), reinterpret_cast<void*>(AddressArgument(info, 0)), length,
      [](napi_env, void*, void* hint) { DeliverCallback(reinterpret_cast<uint64_t>(hint), 0); }, callback);
}

void Detach(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  if (napi_detach_arraybuffer(env, info[0]) != napi_ok)
    throw Napi::Error::New(env, "the ArrayBuffer could not be detached");
}

Napi::Value AddressOf(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  void* address = nullptr;
  size_t length = 0;
  if (napi_get_typedarray_info(env, info[0], nullptr, &length, &address, nullptr, nullptr) != napi_ok &&
      napi_get_dataview_info(env, info[0], &length, &address, nullptr, nullptr) != napi_ok &&
      napi_get_arraybuffer_info(env, info[0], &address, &length) != napi_ok) {
    throw Napi::TypeError::New(env, "expected an ArrayBuffer, a typed array or a DataView");
  }
  return Napi::BigInt::New(env, reinterpret_cast<uint64_t>(address));
}

Napi::Value ReadCString(const Napi::CallbackInfo& info) {
  const uint64_t address = AddressArgument(info, 0);
  if (address == 0) return info.Env().Null();
  return Napi::String::New(info.Env(), reinterpret_cast<const char*>(address));
}

// copyOut(address, view): copies native memory into a view, for memory that JavaScript has no view of.
void CopyOut(const Napi::CallbackInfo& info) {
  auto target = info[1].As<Napi::Uint8Array>();
  std::memcpy(target.Data(), reinterpret_cast<const void*>(AddressArgument(info, 0)), target.ByteLength());
}

}  // namespace

MemoryHandle FindMemory(uint64_t address) {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  auto found = registry.memories.find(address);
  return found == registry.memories.end() ? nullptr : found->second.memory;
}

void DefineMemory(Napi::Env env, Napi::Object exports) {
  exports.Set("allocate", Napi::Function::New(env, Allocate, "allocate"));
  exports.Set("release", Napi::Function::New(env, ReleaseMemory, "release"));
  exports.Set("view", Napi::Function::New(env, View, "view"));
  exports.Set("detach", Napi::Function::New(env, Detach, "detach"));
  exports.Set("addressOf", Napi::Function::New(env, AddressOf, "addressOf"));
  exports.Set("readCString", Napi::Function::New(env, ReadCString, "readCString"));
  exports.Set("copyOut", Napi::Function::New(env, CopyOut, "copyOut"));
}

}  // namespace shoal
