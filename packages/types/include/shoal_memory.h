/*
 * For Node-API addons in C or C++. Reads what an object answers at Symbol.for('cuda.memory') and
 * Symbol.for('cuda.stream'). Buffers and streams of Shoal's packages answer there, and any other package may implement
 * the same protocol. Requires Node-API 9, and nothing else of Shoal.
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

/*
 * The newest version of the memory protocol that this header reads, and the largest number of dimensions. The layout of
 * shoal_memory belongs to this header, not to the protocol.
 */
#define SHOAL_MEMORY_VERSION 1
#define SHOAL_MEMORY_DIMENSIONS 64

/*
 * Memory that CUDA functions reach by its address. The address is valid while the object owns the memory, so read it
 * again in each call.
 */
typedef struct {
  uint64_t address; /* a CUdeviceptr, or a host address if `device` is -1 */
  size_t byte_length;
  int32_t device; /* ordinal; -1 for host memory */
  void* context;  /* its CUcontext; NULL if it belongs to no context */
  char dtype[16]; /* for example "f32"; empty if the memory has no type */
  size_t length;  /* number of elements; 0 if the memory has no type */
  bool read_only;
  /* Since version 1 of the protocol. */
  int32_t version;                          /* of the answer that was read */
  int32_t dimensions;                       /* length of `shape` and `strides`; 0 if the memory has no type */
  int64_t shape[SHOAL_MEMORY_DIMENSIONS];   /* in elements, the outermost dimension first */
  int64_t strides[SHOAL_MEMORY_DIMENSIONS]; /* in elements, as in DLPack */
  bool is_pending; /* work that writes the contents may be in flight: order your work after `stream` */
  void* stream;    /* the CUstream of that work; 1 and 2 are the default streams; NULL if nothing is pending */
} shoal_memory;

/* A stream. The handle is valid while the object owns the stream. */
typedef struct {
  void* handle;   /* a CUstream, which is also a cudaStream_t */
  int32_t device; /* ordinal; -1 if unknown */
  void* context;  /* its CUcontext; NULL if unknown */
} shoal_stream;

static napi_status shoal__refuse(napi_env env, const char* message) {
  napi_throw_type_error(env, NULL, message);
  return napi_pending_exception;
}

/*
 * Reads the answer at a registered symbol, of version 0 to `newest`. A getter that throws because the object is
 * disposed leaves its exception pending.
 */
static napi_status shoal__answer(napi_env env, napi_value value, const char* key, int32_t newest, const char* message,
                                 napi_value* answer, int32_t* found) {
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
  if (napi_get_value_int32(env, version, &number) != napi_ok || number < 0 || number > newest)
    return shoal__refuse(env, message);
  if (found != NULL) *found = number;
  return napi_ok;
}

static bool shoal__word(napi_env env, napi_value answer, const char* key, uint64_t* word) {
  napi_value value;
  bool lossless = false;
  return napi_get_named_property(env, answer, key, &value) == napi_ok &&
         napi_get_value_bigint_uint64(env, value, word, &lossless) == napi_ok && lossless;
}

static bool shoal__number(napi_env env, napi_value answer, const char* key, double least, double* number) {
  napi_value value;
  return napi_get_named_property(env, answer, key, &value) == napi_ok &&
         napi_get_value_double(env, value, number) == napi_ok && *number >= least && *number <= 9007199254740991.0 &&
         *number == (double)(int64_t)*number;
}

/* True if the property exists and is neither undefined nor null. */
static bool shoal__given(napi_env env, napi_value answer, const char* key, napi_value* value) {
  napi_valuetype type;
  return napi_get_named_property(env, answer, key, value) == napi_ok && napi_typeof(env, *value, &type) == napi_ok &&
         type != napi_undefined && type != napi_null;
}

/* Reads an array of integers that are 0 or greater. */
static bool shoal__numbers(napi_env env, napi_value array, int64_t* numbers, int32_t* count) {
  bool is_array = false;
  uint32_t length = 0;
  if (napi_is_array(env, array, &is_array) != napi_ok || !is_array ||
      napi_get_array_length(env, array, &length) != napi_ok || length > SHOAL_MEMORY_DIMENSIONS)
    return false;
  for (uint32_t i = 0; i < length; i++) {
    napi_value element;
    double number;
    if (napi_get_element(env, array, i, &element) != napi_ok ||
        napi_get_value_double(env, element, &number) != napi_ok || !(number >= 0 && number <= 9007199254740991.0) ||
        number != (double)(int64_t)number)
      return false;
    numbers[i] = (int64_t)number;
  }
  *count = (int32_t)length;
  return true;
}

/* Bytes per element; 0 if the text is not a dtype. */
static size_t shoal__element_bytes(const char* dtype) {
  static const struct {
    const char* name;
    size_t bytes;
  } types[] = {{"i8", 1},  {"u8", 1},  {"bool", 1}, {"f8e4m3", 1},    {"f8e5m2", 1},     {"i16", 2},
               {"u16", 2}, {"f16", 2}, {"bf16", 2}, {"i32", 4},       {"u32", 4},        {"f32", 4},
               {"i64", 8}, {"u64", 8}, {"f64", 8},  {"complex64", 8}, {"complex128", 16}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, dtype) == 0) return types[i].bytes;
  return 0;
}

/* True if the elements are in row-major order without gaps. */
static inline bool shoal_is_contiguous(const shoal_memory* memory) {
  int64_t step = 1;
  for (int32_t i = 0; i < memory->dimensions; i++)
    if (memory->shape[i] == 0) return true;
  for (int32_t i = memory->dimensions - 1; i >= 0; i--) {
    if (memory->shape[i] != 1 && memory->strides[i] != step) return false;
    step *= memory->shape[i];
  }
  return true;
}

/* Reads shape and strides, which memory with a type has. Returns false if they contradict the other fields. */
static bool shoal__layout(napi_env env, napi_value answer, bool has_length, shoal_memory* memory) {
  napi_value field;
  int32_t count = 0;
  size_t bytes = shoal__element_bytes(memory->dtype);
  bool has_shape = shoal__given(env, answer, "shape", &field);
  if (has_shape && (bytes == 0 || !shoal__numbers(env, field, memory->shape, &memory->dimensions))) return false;
  if (!has_shape && bytes != 0) {
    if (!has_length) memory->length = memory->byte_length / bytes;
    memory->dimensions = 1;
    memory->shape[0] = (int64_t)memory->length;
  }
  double length = 1, last = 0;
  for (int32_t i = memory->dimensions - 1; i >= 0; i--) {
    memory->strides[i] = (int64_t)length;
    length *= (double)memory->shape[i];
    if (length > 9007199254740991.0) return false;
  }
  if (shoal__given(env, answer, "strides", &field) &&
      (!has_shape || !shoal__numbers(env, field, memory->strides, &count) || count != memory->dimensions))
    return false;
  if (bytes == 0) return true;
  if (has_length && length != (double)memory->length) return false;
  memory->length = (size_t)length;
  for (int32_t i = 0; i < memory->dimensions; i++) last += ((double)memory->shape[i] - 1) * (double)memory->strides[i];
  return length == 0 || (last + 1) * (double)bytes <= (double)memory->byte_length;
}

/*
 * Reads memory with any strides. If `value` is not such memory, a TypeError is pending and the result is not napi_ok.
 */
static inline napi_status shoal_get_strided_memory(napi_env env, napi_value value, shoal_memory* memory) {
  static const char message[] = "memory must be an object with [Symbol.for('cuda.memory')], of version 0 or 1";
  napi_value answer, field;
  uint64_t context;
  double bytes, device, length = 0;
  bool has_dtype = false, has_length = false;
  memset(memory, 0, sizeof *memory);
  napi_status status =
      shoal__answer(env, value, "cuda.memory", SHOAL_MEMORY_VERSION, message, &answer, &memory->version);
  if (status != napi_ok) return status;
  if (!shoal__word(env, answer, "address", &memory->address) || !shoal__word(env, answer, "context", &context) ||
      !shoal__number(env, answer, "byteLength", 0, &bytes) || !shoal__number(env, answer, "deviceOrdinal", -1, &device))
    return shoal__refuse(env, message);
  memory->byte_length = (size_t)bytes;
  memory->device = (int32_t)device;
  memory->context = (void*)(uintptr_t)context;
  if (napi_get_named_property(env, answer, "dtype", &field) == napi_ok)
    has_dtype = napi_get_value_string_utf8(env, field, memory->dtype, sizeof memory->dtype, NULL) == napi_ok;
  has_length = has_dtype && shoal__number(env, answer, "length", 0, &length);
  if (has_length) memory->length = (size_t)length;
  if (napi_get_named_property(env, answer, "readOnly", &field) == napi_ok)
    (void)napi_get_value_bool(env, field, &memory->read_only);
  if (!shoal__layout(env, answer, has_length, memory))
    return shoal__refuse(env, "memory must have a dtype, a shape and strides that stay within its bytes");
  memory->is_pending = shoal__given(env, answer, "stream", &field);
  if (memory->is_pending) {
    uint64_t stream;
    if (!shoal__word(env, answer, "stream", &stream) || stream == 0)
      return shoal__refuse(env, "memory.stream must be a CUstream as a bigint, 1n or 2n for a default stream, or null");
    memory->stream = (void*)(uintptr_t)stream;
  }
  return napi_ok;
}

/*
 * Reads memory whose elements are contiguous. Memory with gaps is refused with an error, never read as if it were
 * contiguous.
 */
static inline napi_status shoal_get_memory(napi_env env, napi_value value, shoal_memory* memory) {
  napi_status status = shoal_get_strided_memory(env, value, memory);
  if (status != napi_ok || shoal_is_contiguous(memory)) return status;
  return shoal__refuse(env, "memory must be contiguous, not with strides that skip elements: copy it first");
}

/* Reads a stream. undefined and null mean the default stream. If `value` is not a stream, a TypeError is pending. */
static inline napi_status shoal_get_stream(napi_env env, napi_value value, shoal_stream* stream) {
  static const char message[] = "stream must be an object with [Symbol.for('cuda.stream')], of version 0";
  napi_valuetype type;
  napi_value answer;
  uint64_t handle, context;
  double device;
  memset(stream, 0, sizeof *stream);
  stream->device = -1;
  napi_status status = napi_typeof(env, value, &type);
  if (status != napi_ok || type == napi_undefined || type == napi_null) return status;
  if ((status = shoal__answer(env, value, "cuda.stream", 0, message, &answer, NULL)) != napi_ok) return status;
  if (!shoal__word(env, answer, "handle", &handle) || !shoal__word(env, answer, "context", &context) ||
      !shoal__number(env, answer, "deviceOrdinal", -1, &device))
    return shoal__refuse(env, message);
  stream->handle = (void*)(uintptr_t)handle;
  stream->device = (int32_t)device;
  stream->context = (void*)(uintptr_t)context;
  return napi_ok;
}

#endif
