// An addon that includes only one header of Shoal. It takes memory and streams of any package and calls the CUDA driver
// itself.
#define NAPI_VERSION 9
#include <dlfcn.h>
#include <shoal_memory.h>

#include <string>

namespace {

using Status = int;

/**
 * Looks up a function of the driver that the process has loaded: NVIDIA's, or the software device under the same name.
 */
template <typename Function>
Function driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

napi_value fail(napi_env env, const std::string& message) {
  napi_throw_error(env, nullptr, message.c_str());
  return nullptr;
}

/**
 * Makes the stream wait for the work that the memory's producer has queued on another stream. Every function that takes
 * memory and a stream must do so.
 */
Status wait_for_producer(const shoal_memory& memory, void* stream) {
  if (!memory.is_pending || memory.stream == stream) return 0;
  const auto create = driver<Status (*)(void**, unsigned)>("cuEventCreate");
  const auto record = driver<Status (*)(void*, void*)>("cuEventRecord");
  const auto wait = driver<Status (*)(void*, void*, unsigned)>("cuStreamWaitEvent");
  const auto destroy = driver<Status (*)(void*)>("cuEventDestroy_v2");
  void* event = nullptr;
  Status status = create(&event, 2);  // CU_EVENT_DISABLE_TIMING
  if (status != 0) return status;
  status = record(event, memory.stream);
  if (status == 0) status = wait(stream, event, 0);
  destroy(event);
  return status;
}

/** fill(memory, byte, stream): queues a write of `byte` to the whole memory. */
napi_value fill(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value arguments[3];
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) != napi_ok) return nullptr;
  shoal_memory memory;
  shoal_stream stream;
  uint32_t byte = 0;
  if (shoal_get_memory(env, arguments[0], &memory) != napi_ok) return nullptr;
  if (shoal_get_stream(env, arguments[2], &stream) != napi_ok) return nullptr;
  if (napi_get_value_uint32(env, arguments[1], &byte) != napi_ok || byte > 255) {
    napi_throw_type_error(env, nullptr, "byte must be an integer from 0 to 255");
    return nullptr;
  }
  const auto push = driver<Status (*)(void*)>("cuCtxPushCurrent_v2");
  const auto pop = driver<Status (*)(void**)>("cuCtxPopCurrent_v2");
  const auto set = driver<Status (*)(uint64_t, unsigned char, size_t, void*)>("cuMemsetD8Async");
  if (push == nullptr || pop == nullptr || set == nullptr) return fail(env, "no libcuda.so.1 in sight of the loader");
  // The context is pushed and popped, so the caller's context stays current.
  Status status = push(memory.context);
  if (status == 0) {
    status = wait_for_producer(memory, stream.handle);
    if (status == 0) status = set(memory.address, static_cast<unsigned char>(byte), memory.byte_length, stream.handle);
    void* context = nullptr;
    pop(&context);
  }
  return status == 0 ? nullptr : fail(env, "the driver refused with status " + std::to_string(status));
}

}  // namespace

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "fill", NAPI_AUTO_LENGTH, fill, nullptr, &function) != napi_ok) return nullptr;
  return function;
}
