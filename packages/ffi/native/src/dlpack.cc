#include "dlpack.h"

#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "callbacks.h"

namespace shoal {
namespace {

// The ABI of DLPack 1.x. The version and the deleter of the second kind lie at the same places in each later one.
struct Tensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t dimensions;
  uint8_t type_code;
  uint8_t type_bits;
  uint16_t type_lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor*);
};

struct VersionedTensor {
  uint32_t major;
  uint32_t minor;
  void* manager;
  void (*deleter)(VersionedTensor*);
  uint64_t flags;
  Tensor tensor;
};

static_assert(sizeof(Tensor) == 48 && sizeof(ManagedTensor) == 64 && sizeof(VersionedTensor) == 80, "the ABI of DLPack");

struct Registry {
  std::mutex mutex;
  std::unordered_set<const void*> live;
};

// Never destroyed: other libraries may give tensors back while the process exits.
Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

// What a tensor of ours needs until its deleter is called.
struct Manager {
  uint64_t callback;
  std::vector<int64_t> sizes;
};

template <typename Managed>
void Delete(Managed* managed) {
  {
    Registry& registry = TheRegistry();
    std::lock_guard<std::mutex> lock(registry.mutex);
    // One that was deleted before is not there.
    if (registry.live.erase(managed) == 0) return;
  }
  auto* manager = static_cast<Manager*>(managed->manager);
  const uint64_t callback = manager->callback;
  delete manager;
  delete managed;
  DeliverCallback(callback, 0);
}

uint64_t Word(const Napi::CallbackInfo& info, size_t index) {
  bool lossless = false;
  return info[index].As<Napi::BigInt>().Uint64Value(&lossless);
}

int32_t Number(const Napi::CallbackInfo& info, size_t index) { return info[index].As<Napi::Number>().Int32Value(); }

template <typename Managed>
uint64_t Make(const Napi::CallbackInfo& info, Managed* managed) {
  auto sizes = info[4].As<Napi::BigInt64Array>();
  auto* manager = new Manager{static_cast<uint64_t>(info[5].As<Napi::Number>().Int64Value()),
                              std::vector<int64_t>(sizes.Data(), sizes.Data() + sizes.ElementLength())};
  const uint32_t type = info[3].As<Napi::Number>().Uint32Value();
  const size_t dimensions = manager->sizes.size() / 2;
  managed->tensor = {reinterpret_cast<void*>(Word(info, 0)), Number(info, 1), Number(info, 2), static_cast<int32_t>(dimensions),
                     static_cast<uint8_t>(type), static_cast<uint8_t>(type >> 8), static_cast<uint16_t>(type >> 16),
                     manager->sizes.data(), manager->sizes.data() + dimensions, 0};
  managed->manager = manager;
  managed->deleter = Delete<Managed>;
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.live.insert(managed);
  return reinterpret_cast<uint64_t>(managed);
}

// createTensor(data, deviceType, deviceId, code | bits << 8 | lanes << 16, [...shape, ...strides], callback, flags): flags for a
// versioned one, null otherwise. The callback is called once, when the deleter was.
Napi::Value CreateTensor(const Napi::CallbackInfo& info) {
  if (info[6].IsNull()) return Napi::BigInt::New(info.Env(), Make(info, new ManagedTensor{}));
  auto* versioned = new VersionedTensor{};
  versioned->major = 1;
  versioned->minor = 1;
  versioned->flags = Word(info, 6);
  return Napi::BigInt::New(info.Env(), Make(info, versioned));
}

template <typename Managed>
void Release(uint64_t address) {
  auto* managed = reinterpret_cast<Managed*>(address);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

// deleteTensor(address, isVersioned): calls the deleter, where there is one.
void DeleteTensor(const Napi::CallbackInfo& info) {
  if (info[1].As<Napi::Boolean>().Value()) Release<VersionedTensor>(Word(info, 0));
  else Release<ManagedTensor>(Word(info, 0));
}

// externalAddress(value): what an External of another addon points to; undefined for anything else.
Napi::Value ExternalAddress(const Napi::CallbackInfo& info) {
  if (!info[0].IsExternal()) return info.Env().Undefined();
  void* pointer = nullptr;
  if (napi_get_value_external(info.Env(), info[0], &pointer) != napi_ok) return info.Env().Undefined();
  return Napi::BigInt::New(info.Env(), reinterpret_cast<uint64_t>(pointer));
}

}  // namespace

void DefineDLPack(Napi::Env env, Napi::Object exports) {
  exports.Set("createTensor", Napi::Function::New(env, CreateTensor, "createTensor"));
  exports.Set("deleteTensor", Napi::Function::New(env, DeleteTensor, "deleteTensor"));
  exports.Set("externalAddress", Napi::Function::New(env, ExternalAddress, "externalAddress"));
}

}  // namespace shoal
