#include "dlpack.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "callbacks.h"

namespace shoal {
namespace {

// The ABI of DLPack 1.x. Every later version keeps the offsets of the version and of the deleter of a versioned tensor.
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

static_assert(sizeof(Tensor) == 48 && sizeof(ManagedTensor) == 64 && sizeof(VersionedTensor) == 80,
              "the ABI of DLPack");

// A tensor made here. Its address is the address of whichever struct the union holds. Shape and strides follow in
// `sizes`.
struct Block {
  union {
    ManagedTensor managed;
    VersionedTensor versioned;
  };
  uint64_t callback;
  Block* next;
  int64_t sizes[1];
};

// The blocks whose deleter was not called yet.
std::mutex live_mutex;
Block* live = nullptr;

void Delete(void* tensor) {
  uint64_t callback = 0;
  {
    std::lock_guard<std::mutex> lock(live_mutex);
    Block** link = &live;
    while (*link != nullptr && *link != tensor) link = &(*link)->next;
    Block* block = *link;
    // The tensor was deleted before.
    if (block == nullptr) return;
    *link = block->next;
    callback = block->callback;
    std::free(block);
  }
  DeliverCallback(callback, 0);
}

uint64_t Word(const Napi::CallbackInfo& info, size_t index) {
  bool lossless = false;
  return info[index].As<Napi::BigInt>().Uint64Value(&lossless);
}

int32_t Number(const Napi::CallbackInfo& info, size_t index) { return info[index].As<Napi::Number>().Int32Value(); }

// createTensor(data, deviceType, deviceId, code | bits << 8 | lanes << 16, [...shape, ...strides], callback, flags):
// `flags` is null for an unversioned tensor. The callback is called once, after the deleter.
Napi::Value CreateTensor(const Napi::CallbackInfo& info) {
  auto sizes = info[4].As<Napi::BigInt64Array>();
  const size_t count = sizes.ElementLength();
  auto* block = static_cast<Block*>(std::calloc(1, sizeof(Block) + count * sizeof(int64_t)));
  if (block == nullptr) throw Napi::RangeError::New(info.Env(), "out of host memory");
  std::memcpy(block->sizes, sizes.Data(), count * sizeof(int64_t));
  block->callback = static_cast<uint64_t>(info[5].As<Napi::Number>().Int64Value());
  const bool is_versioned = !info[6].IsNull();
  if (is_versioned) {
    block->versioned.major = 1;
    block->versioned.minor = 1;
    block->versioned.flags = Word(info, 6);
    block->versioned.deleter = reinterpret_cast<void (*)(VersionedTensor*)>(Delete);
  } else block->managed.deleter = reinterpret_cast<void (*)(ManagedTensor*)>(Delete);
  Tensor& tensor = is_versioned ? block->versioned.tensor : block->managed.tensor;
  const uint32_t type = info[3].As<Napi::Number>().Uint32Value();
  tensor = {reinterpret_cast<void*>(Word(info, 0)),
            Number(info, 1),
            Number(info, 2),
            static_cast<int32_t>(count / 2),
            static_cast<uint8_t>(type),
            static_cast<uint8_t>(type >> 8),
            static_cast<uint16_t>(type >> 16),
            block->sizes,
            block->sizes + count / 2,
            0};
  std::lock_guard<std::mutex> lock(live_mutex);
  block->next = live;
  live = block;
  return Napi::BigInt::New(info.Env(), reinterpret_cast<uint64_t>(block));
}

template <typename Managed>
void Release(uint64_t address) {
  auto* managed = reinterpret_cast<Managed*>(address);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

// deleteTensor(address, isVersioned): calls the deleter, if the tensor has one.
void DeleteTensor(const Napi::CallbackInfo& info) {
  if (info[1].As<Napi::Boolean>().Value()) Release<VersionedTensor>(Word(info, 0));
  else Release<ManagedTensor>(Word(info, 0));
}

// externalAddress(value): the pointer in an External of another addon; undefined for any other value.
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
