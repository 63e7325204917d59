// An addon that creates and consumes DLPack tensors and does not know Shoal: it declares the structs of the ABI itself.
#define NAPI_VERSION 8
#include <node_api.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <thread>

namespace {

struct Device {
  int32_t type, id;
};
struct Type {
  uint8_t code, bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  Type dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct Versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
  uint64_t flags;
  Tensor tensor;
};

int deletions = 0;

template <typename T>
struct Made {
  T managed;  // must be first: the tensor's address is this member's address
  int64_t sizes[2][64];
};

template <typename T>
void Delete(T* managed) {
  deletions += 1;
  delete reinterpret_cast<Made<T>*>(managed);
}

int64_t Integer(napi_env env, napi_value object, const char* key, int64_t otherwise) {
  napi_value value;
  napi_get_named_property(env, object, key, &value);
  napi_valuetype type;
  napi_typeof(env, value, &type);
  int64_t number = otherwise;
  bool lossless;
  if (type == napi_number) napi_get_value_int64(env, value, &number);
  if (type == napi_bigint) napi_get_value_bigint_uint64(env, value, reinterpret_cast<uint64_t*>(&number), &lossless);
  return number;
}

int Sizes(napi_env env, napi_value object, const char* key, int64_t* sizes) {
  napi_value list, element;
  bool is_array = false;
  uint32_t length = 0;
  napi_get_named_property(env, object, key, &list);
  napi_is_array(env, list, &is_array);
  if (!is_array) return -1;
  napi_get_array_length(env, list, &length);
  for (uint32_t i = 0; i < length; i++) {
    napi_get_element(env, list, i, &element);
    napi_get_value_int64(env, element, &sizes[i]);
  }
  return static_cast<int>(length);
}

template <typename T>
T* Make(napi_env env, napi_value given) {
  auto* made = new Made<T>{};
  Tensor& tensor = made->managed.tensor;
  const int dimensions = Sizes(env, given, "shape", made->sizes[0]);
  tensor.data = reinterpret_cast<void*>(Integer(env, given, "data", 0));
  tensor.device = {static_cast<int32_t>(Integer(env, given, "deviceType", 2)),
                   static_cast<int32_t>(Integer(env, given, "deviceId", 0))};
  tensor.ndim = static_cast<int32_t>(Integer(env, given, "ndim", dimensions));
  tensor.dtype = {static_cast<uint8_t>(Integer(env, given, "code", 2)),
                  static_cast<uint8_t>(Integer(env, given, "bits", 32)),
                  static_cast<uint16_t>(Integer(env, given, "lanes", 1))};
  tensor.shape = dimensions < 0 ? nullptr : made->sizes[0];
  tensor.strides = Sizes(env, given, "strides", made->sizes[1]) < 0 ? nullptr : made->sizes[1];
  tensor.byte_offset = static_cast<uint64_t>(Integer(env, given, "byteOffset", 0));
  made->managed.deleter = Integer(env, given, "noDeleter", 0) != 0 ? nullptr : Delete<T>;
  return &made->managed;
}

// make({ data, shape, … , external }) → the tensor
napi_value MakeTensor(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value given, result;
  napi_get_cb_info(env, info, &count, &given, nullptr, nullptr);
  void* pointer;
  if (Integer(env, given, "major", 0) == 0) pointer = Make<Managed>(env, given);
  else {
    auto* versioned = Make<Versioned>(env, given);
    versioned->major = static_cast<uint32_t>(Integer(env, given, "major", 1));
    versioned->flags = static_cast<uint64_t>(Integer(env, given, "flags", 0));
    pointer = versioned;
  }
  if (Integer(env, given, "external", 0) != 0) napi_create_external(env, pointer, nullptr, nullptr, &result);
  else napi_create_bigint_uint64(env, reinterpret_cast<uint64_t>(pointer), &result);
  return result;
}

template <typename T>
Tensor* Take(void* pointer) {
  return &static_cast<T*>(pointer)->tensor;
}

void Put(napi_env env, napi_value object, const char* key, int64_t number) {
  napi_value value;
  napi_create_int64(env, number, &value);
  napi_set_named_property(env, object, key, value);
}

// read(address, isVersioned) → the fields that a consumer reads
napi_value ReadTensor(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2], result, value;
  uint64_t address;
  bool lossless, versioned;
  napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr);
  napi_get_value_bigint_uint64(env, arguments[0], &address, &lossless);
  napi_get_value_bool(env, arguments[1], &versioned);
  void* pointer = reinterpret_cast<void*>(address);
  const Tensor& tensor = versioned ? *Take<Versioned>(pointer) : *Take<Managed>(pointer);
  napi_create_object(env, &result);
  napi_create_bigint_uint64(env, reinterpret_cast<uint64_t>(tensor.data), &value);
  napi_set_named_property(env, result, "data", value);
  Put(env, result, "deviceType", tensor.device.type);
  Put(env, result, "deviceId", tensor.device.id);
  Put(env, result, "code", tensor.dtype.code);
  Put(env, result, "bits", tensor.dtype.bits);
  Put(env, result, "lanes", tensor.dtype.lanes);
  for (const char* key : {"shape", "strides"}) {
    const int64_t* sizes = key[1] == 'h' ? tensor.shape : tensor.strides;
    napi_create_array(env, &value);
    for (int32_t i = 0; i < tensor.ndim; i++) {
      napi_value element;
      napi_create_int64(env, sizes[i], &element);
      napi_set_element(env, value, i, element);
    }
    napi_set_named_property(env, result, key, value);
  }
  if (versioned) {
    Put(env, result, "major", static_cast<Versioned*>(pointer)->major);
    Put(env, result, "flags", static_cast<int64_t>(static_cast<Versioned*>(pointer)->flags));
  }
  return result;
}

// end(address, isVersioned, times): calls the deleter on a new thread.
napi_value EndTensor(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value arguments[3];
  uint64_t address;
  uint32_t times;
  bool lossless, versioned;
  napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr);
  napi_get_value_bigint_uint64(env, arguments[0], &address, &lossless);
  napi_get_value_bool(env, arguments[1], &versioned);
  napi_get_value_uint32(env, arguments[2], &times);
  void* pointer = reinterpret_cast<void*>(address);
  auto* of_versioned = versioned ? static_cast<Versioned*>(pointer)->deleter : nullptr;
  auto* of_managed = versioned ? nullptr : static_cast<Managed*>(pointer)->deleter;
  std::thread([=] {
    for (uint32_t i = 0; i < times; i++) {
      if (versioned) of_versioned(static_cast<Versioned*>(pointer));
      else of_managed(static_cast<Managed*>(pointer));
    }
  }).join();
  return nullptr;
}

napi_value Deletions(napi_env env, napi_callback_info) {
  napi_value result;
  napi_create_int32(env, deletions, &result);
  deletions = 0;
  return result;
}

}  // namespace

NAPI_MODULE_INIT() {
  const struct {
    const char* name;
    napi_callback function;
  } functions[] = {{"make", MakeTensor}, {"read", ReadTensor}, {"end", EndTensor}, {"deletions", Deletions}};
  for (const auto& each : functions) {
    napi_value function;
    napi_create_function(env, each.name, NAPI_AUTO_LENGTH, each.function, nullptr, &function);
    napi_set_named_property(env, exports, each.name, function);
  }
  return exports;
}
