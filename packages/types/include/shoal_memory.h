/*
 * For addons by Node-API, in C or C++: what an object answers at Symbol.for('cuda.memory') and Symbol.for('cuda.stream'). Buffers and
 * streams of Shoal's packages answer there, and so may those of any other package. Needs Node-API 9, and nothing else of Shoal.
 *
 *   shoal_memory memory;
 *   if (shoal_get_memory(env, argument, &memory) != napi_ok) return NULL; // an exception is pending
 */
#ifndef SHOAL_MEMORY_H
#define SHOAL_MEMORY_H

#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Memory that CUDA functions reach by its address, for as long as the object has it: ask again in each call. */
typedef struct {
  uint64_t address;      /* a CUdeviceptr, or an address of the host where `device` is -1 */
  size_t byte_length;
  int32_t device;        /* ordinal; -1 for memory of the host */
  void *context;         /* its CUcontext; NULL when it belongs to none */
  char dtype[16];        /* such as "f32"; empty where the memory has no type */
  size_t length;         /* number of elements; 0 where the memory has no type */
  bool read_only;
} shoal_memory;

/* A stream, for as long as the object has it. */
typedef struct {
  void *handle;          /* a CUstream, which is a cudaStream_t too */
  int32_t device;        /* ordinal; -1 where it is not known */
  void *context;         /* its CUcontext; NULL where it is not known */
} shoal_stream;

static napi_status shoal__refuse(napi_env env, const char *message) {
  napi_throw_type_error(env, NULL, message);
  return napi_pending_exception;
}

/* The answer of version 0 at a registered symbol. A getter that throws, because the object is gone, leaves its exception pending. */
static napi_status shoal__answer(napi_env env, napi_value value, const char *key, const char *message, napi_value *answer) {
  napi_valuetype type;
  napi_status status = napi_typeof(env, value, &type);
  if (status != napi_ok) return status;
  if (type != napi_object && type != napi_function) return shoal__refuse(env, message);
  napi_value symbol, version;
  if ((status = node_api_symbol_for(env, key, NAPI_AUTO_LENGTH, &symbol)) != napi_ok) return status;
  if ((status = napi_get_property(env, value, symbol, answer)) != napi_ok) return status;
  if ((status = napi_typeof(env, *answer, &type)) != napi_ok) return status;
  if (type != napi_object) return shoal__refuse(env, message);
  int32_t number;
  if ((status = napi_get_named_property(env, *answer, "version", &version)) != napi_ok) return status;
  if (napi_get_value_int32(env, version, &number) != napi_ok || number != 0) return shoal__refuse(env, message);
  return napi_ok;
}

static bool shoal__word(napi_env env, napi_value answer, const char *key, uint64_t *word) {
  napi_value value;
  bool lossless = false;
  return napi_get_named_property(env, answer, key, &value) == napi_ok &&
         napi_get_value_bigint_uint64(env, value, word, &lossless) == napi_ok && lossless;
}

static bool shoal__number(napi_env env, napi_value answer, const char *key, double least, double *number) {
  napi_value value;
  return napi_get_named_property(env, answer, key, &value) == napi_ok &&
         napi_get_value_double(env, value, number) == napi_ok && *number >= least && *number <= 9007199254740991.0 &&
         *number == (double)(int64_t)*number;
}

/* Reads memory. Where `value` is none, a TypeError is pending and the result is not napi_ok. */
static napi_status shoal_get_memory(napi_env env, napi_value value, shoal_memory *memory) {
  static const char message[] = "memory must be an object with [Symbol.for('cuda.memory')], of version 0";
  napi_value answer, field;
  uint64_t context;
  double bytes, device, length = 0;
  bool has_dtype = false;
  memset(memory, 0, sizeof *memory);
  napi_status status = shoal__answer(env, value, "cuda.memory", message, &answer);
  if (status != napi_ok) return status;
  if (!shoal__word(env, answer, "address", &memory->address) || !shoal__word(env, answer, "context", &context) ||
      !shoal__number(env, answer, "byteLength", 0, &bytes) || !shoal__number(env, answer, "deviceOrdinal", -1, &device))
    return shoal__refuse(env, message);
  memory->byte_length = (size_t)bytes;
  memory->device = (int32_t)device;
  memory->context = (void *)(uintptr_t)context;
  if (napi_get_named_property(env, answer, "dtype", &field) == napi_ok)
    has_dtype = napi_get_value_string_utf8(env, field, memory->dtype, sizeof memory->dtype, NULL) == napi_ok;
  if (has_dtype && shoal__number(env, answer, "length", 0, &length)) memory->length = (size_t)length;
  if (napi_get_named_property(env, answer, "readOnly", &field) == napi_ok)
    (void)napi_get_value_bool(env, field, &memory->read_only);
  return napi_ok;
}

/* Reads a stream; undefined and null are the default stream. Where `value` is none, a TypeError is pending. */
static napi_status shoal_get_stream(napi_env env, napi_value value, shoal_stream *stream) {
  static const char message[] = "stream must be an object with [Symbol.for('cuda.stream')], of version 0";
  napi_valuetype type;
  napi_value answer;
  uint64_t handle, context;
  double device;
  memset(stream, 0, sizeof *stream);
  stream->device = -1;
  napi_status status = napi_typeof(env, value, &type);
  if (status != napi_ok || type == napi_undefined || type == napi_null) return status;
  if ((status = shoal__answer(env, value, "cuda.stream", message, &answer)) != napi_ok) return status;
  if (!shoal__word(env, answer, "handle", &handle) || !shoal__word(env, answer, "context", &context) ||
      !shoal__number(env, answer, "deviceOrdinal", -1, &device))
    return shoal__refuse(env, message);
  stream->handle = (void *)(uintptr_t)handle;
  stream->device = (int32_t)device;
  stream->context = (void *)(uintptr_t)context;
  return napi_ok;
}

#endif
