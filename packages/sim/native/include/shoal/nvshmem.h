// NVSHMEM's host ABI, as the software device speaks it: names, values and layouts of NVSHMEM 3.4.5.
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "shoal/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef CUstream cudaStream_t;
typedef int32_t nvshmem_team_t;
typedef uint64_t nvshmemx_team_uniqueid_t;

// Passed by value as CUDA's classes of 16-bit floats are: two bytes in an integer register.
typedef struct {
  uint16_t bits;
} ShoalHalf;
typedef struct {
  uint16_t bits;
} ShoalBfloat16;

#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 4
#define NVSHMEM_VENDOR_PATCH_VERSION 5
#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3
#define NVSHMEM_MAX_NAME_LEN 256

enum nvshmemx_status {
  NVSHMEMX_SUCCESS = 0,
  NVSHMEMX_ERROR_INVALID_VALUE = 1,
  NVSHMEMX_ERROR_OUT_OF_MEMORY = 2,
  NVSHMEMX_ERROR_NOT_SUPPORTED = 3,
  NVSHMEMX_ERROR_SYMMETRY = 4,
  NVSHMEMX_ERROR_GPU_NOT_SELECTED = 5,
  NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED = 6,
  NVSHMEMX_ERROR_INTERNAL = 7,
};

enum {
  NVSHMEMX_INIT_THREAD_PES = 1,
  NVSHMEMX_INIT_WITH_MPI_COMM = 1 << 1,
  NVSHMEMX_INIT_WITH_SHMEM = 1 << 2,
  NVSHMEMX_INIT_WITH_UNIQUEID = 1 << 3,
};

enum {
  NVSHMEM_STATUS_NOT_INITIALIZED = 0,
  NVSHMEM_STATUS_IS_BOOTSTRAPPED = 1,
  NVSHMEM_STATUS_IS_INITIALIZED = 2,
  NVSHMEM_STATUS_LIMITED_MPG = 3,
  NVSHMEM_STATUS_FULL_MPG = 4,
};

enum { NVSHMEM_THREAD_SINGLE = 0, NVSHMEM_THREAD_FUNNELED = 1, NVSHMEM_THREAD_SERIALIZED = 2, NVSHMEM_THREAD_MULTIPLE = 3 };

enum { NVSHMEM_CMP_EQ = 0, NVSHMEM_CMP_NE = 1, NVSHMEM_CMP_GT = 2, NVSHMEM_CMP_LE = 3, NVSHMEM_CMP_LT = 4, NVSHMEM_CMP_GE = 5 };

enum { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 };

enum {
  NVSHMEM_TEAM_INVALID = -1,
  NVSHMEM_TEAM_WORLD = 0,
  NVSHMEM_TEAM_SHARED = 1,
  NVSHMEMX_TEAM_NODE = 2,
  NVSHMEMX_TEAM_SAME_MYPE_NODE = 3,
  NVSHMEMI_TEAM_SAME_GPU = 4,
  NVSHMEMI_TEAM_GPU_LEADERS = 5,
  NVSHMEM_TEAMS_MIN = 6,
};

#define NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS 1
#define NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID 2

typedef struct {
  int version;
  char internal[124];
} nvshmemx_uniqueid_t;

typedef struct {
  int version;
  nvshmemx_uniqueid_t* id;
  int myrank;
  int nranks;
} nvshmemx_uniqueid_args_t;

typedef struct {
  int version;
  nvshmemx_uniqueid_args_t uid_args;
  char content[96];
} nvshmemx_init_args_t;

typedef struct {
  int version;
  void* mpi_comm;
  nvshmemx_init_args_t args;
} nvshmemx_init_attr_t;

typedef struct {
  int version;
  int num_contexts;
  nvshmemx_team_uniqueid_t uniqueid;
  char padding[48];
} nvshmem_team_config_t;

typedef struct {
  int major;
  int minor;
  int patch;
} nvshmemi_version_t;

typedef void (*nvshmemx_device_lib_init_cb)(void** dev_state_ptr, void** transport_dev_state_ptr);

#ifdef __cplusplus
static_assert(sizeof(nvshmemx_uniqueid_t) == 128 && sizeof(nvshmemx_uniqueid_args_t) == 24 && sizeof(nvshmemx_init_args_t) == 128 &&
              sizeof(nvshmemx_init_attr_t) == 144 && sizeof(nvshmem_team_config_t) == 64);
#endif

// Every list below calls X(name in the functions, C type).
#define SHOAL_NVSHMEM_BITWISE_AMO_TYPES(X) \
  X(uint, unsigned int)                    \
  X(ulong, unsigned long)                  \
  X(ulonglong, unsigned long long)         \
  X(int32, int32_t)                        \
  X(uint32, uint32_t)                      \
  X(int64, int64_t)                        \
  X(uint64, uint64_t)
#define SHOAL_NVSHMEM_STANDARD_AMO_TYPES(X) \
  SHOAL_NVSHMEM_BITWISE_AMO_TYPES(X)        \
  X(int, int)                               \
  X(long, long)                             \
  X(longlong, long long)                    \
  X(size, size_t)                           \
  X(ptrdiff, ptrdiff_t)
#define SHOAL_NVSHMEM_EXTENDED_AMO_TYPES(X) \
  SHOAL_NVSHMEM_STANDARD_AMO_TYPES(X)       \
  X(float, float)                           \
  X(double, double)
#define SHOAL_NVSHMEM_WAIT_TYPES(X)   \
  SHOAL_NVSHMEM_STANDARD_AMO_TYPES(X) \
  X(short, short)                     \
  X(ushort, unsigned short)
#define SHOAL_NVSHMEM_BITWISE_REDUCE_TYPES(X) \
  X(uchar, unsigned char)                     \
  X(ushort, unsigned short)                   \
  X(uint, unsigned int)                       \
  X(ulong, unsigned long)                     \
  X(ulonglong, unsigned long long)            \
  X(int8, int8_t)                             \
  X(int16, int16_t)                           \
  X(int32, int32_t)                           \
  X(int64, int64_t)                           \
  X(uint8, uint8_t)                           \
  X(uint16, uint16_t)                         \
  X(uint32, uint32_t)                         \
  X(uint64, uint64_t)                         \
  X(size, size_t)
#define SHOAL_NVSHMEM_REDUCE_TYPES(X)   \
  SHOAL_NVSHMEM_BITWISE_REDUCE_TYPES(X) \
  X(char, char)                         \
  X(schar, signed char)                 \
  X(short, short)                       \
  X(int, int)                           \
  X(long, long)                         \
  X(longlong, long long)                \
  X(bfloat16, ShoalBfloat16)            \
  X(half, ShoalHalf)                    \
  X(float, float)                       \
  X(double, double)
#define SHOAL_NVSHMEM_RMA_TYPES(X) \
  SHOAL_NVSHMEM_REDUCE_TYPES(X)    \
  X(ptrdiff, ptrdiff_t)
// X(bits)
#define SHOAL_NVSHMEM_SIZES(X) X(8) X(16) X(32) X(64) X(128)

// Session
SHOAL_EXPORT int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t* uniqueid);
SHOAL_EXPORT int nvshmemx_set_attr_uniqueid_args(int myrank, int nranks, const nvshmemx_uniqueid_t* uniqueid, nvshmemx_init_attr_t* attr);
SHOAL_EXPORT int nvshmemx_set_attr_mpi_comm_args(void* mpi_comm, nvshmemx_init_attr_t* attr);
SHOAL_EXPORT int nvshmemx_hostlib_init_attr(unsigned flags, nvshmemx_init_attr_t* attr);
SHOAL_EXPORT void nvshmemx_hostlib_finalize(void);
SHOAL_EXPORT int nvshmemid_hostlib_init_attr(int requested, int* provided, unsigned flags, nvshmemx_init_attr_t* attr, nvshmemi_version_t version,
                                             nvshmemx_device_lib_init_cb callback);
SHOAL_EXPORT void nvshmemid_hostlib_finalize(void* device_ctx, void* transport_device_ctx);
SHOAL_EXPORT int nvshmemx_init_status(void);
SHOAL_EXPORT int nvshmemid_init_status(void);
SHOAL_EXPORT void nvshmem_query_thread(int* provided);
SHOAL_EXPORT void nvshmem_global_exit(int status);
SHOAL_EXPORT int nvshmem_my_pe(void);
SHOAL_EXPORT int nvshmem_n_pes(void);
SHOAL_EXPORT void nvshmem_info_get_version(int* major, int* minor);
SHOAL_EXPORT void nvshmem_info_get_name(char* name);
SHOAL_EXPORT void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch);

// Memory
SHOAL_EXPORT void* nvshmem_malloc(size_t size);
SHOAL_EXPORT void* nvshmem_calloc(size_t count, size_t size);
SHOAL_EXPORT void* nvshmem_align(size_t alignment, size_t size);
SHOAL_EXPORT void nvshmem_free(void* pointer);
SHOAL_EXPORT void* nvshmem_ptr(const void* pointer, int pe);
SHOAL_EXPORT void* nvshmemx_mc_ptr(nvshmem_team_t team, const void* pointer);
SHOAL_EXPORT int nvshmemx_buffer_register(void* address, size_t length);
SHOAL_EXPORT int nvshmemx_buffer_unregister(void* address);
SHOAL_EXPORT void nvshmemx_buffer_unregister_all(void);
SHOAL_EXPORT void* nvshmemx_buffer_register_symmetric(void* address, size_t size, int flags);
SHOAL_EXPORT int nvshmemx_buffer_unregister_symmetric(void* mapped, size_t size);

// Code that runs on the device
SHOAL_EXPORT int nvshmemx_cumodule_init(CUmodule module);
SHOAL_EXPORT int nvshmemx_cumodule_finalize(CUmodule module);
SHOAL_EXPORT int nvshmemx_culibrary_init(CUlibrary library);
SHOAL_EXPORT int nvshmemx_culibrary_finalize(CUlibrary library);

// Order and synchronization
SHOAL_EXPORT void nvshmem_quiet(void);
SHOAL_EXPORT void nvshmem_fence(void);
SHOAL_EXPORT int nvshmem_barrier(nvshmem_team_t team);
SHOAL_EXPORT void nvshmem_barrier_all(void);
SHOAL_EXPORT int nvshmem_team_sync(nvshmem_team_t team);
SHOAL_EXPORT void nvshmem_sync_all(void);
SHOAL_EXPORT void nvshmemx_quiet_on_stream(cudaStream_t stream);
SHOAL_EXPORT int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t stream);
SHOAL_EXPORT void nvshmemx_barrier_all_on_stream(cudaStream_t stream);
SHOAL_EXPORT int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t stream);
SHOAL_EXPORT void nvshmemx_sync_all_on_stream(cudaStream_t stream);

// Signals
SHOAL_EXPORT uint64_t nvshmem_signal_fetch(uint64_t* signal);
SHOAL_EXPORT void nvshmemx_signal_op_on_stream(uint64_t* address, uint64_t signal, int operation, int pe, cudaStream_t stream);
SHOAL_EXPORT void nvshmemx_signal_wait_until_on_stream(uint64_t* address, int comparison, uint64_t value, cudaStream_t stream);

// Teams
SHOAL_EXPORT int nvshmem_team_my_pe(nvshmem_team_t team);
SHOAL_EXPORT int nvshmem_team_n_pes(nvshmem_team_t team);
SHOAL_EXPORT void nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t* config);
SHOAL_EXPORT int nvshmem_team_translate_pe(nvshmem_team_t source, int pe, nvshmem_team_t destination);
SHOAL_EXPORT int nvshmem_team_split_strided(nvshmem_team_t parent, int start, int stride, int size, const nvshmem_team_config_t* config, long mask,
                                            nvshmem_team_t* team);
SHOAL_EXPORT int nvshmem_team_split_2d(nvshmem_team_t parent, int xrange, const nvshmem_team_config_t* xconfig, long xmask, nvshmem_team_t* xteam,
                                       const nvshmem_team_config_t* yconfig, long ymask, nvshmem_team_t* yteam);
SHOAL_EXPORT int nvshmemx_team_get_uniqueid(nvshmemx_team_uniqueid_t* uniqueid);
SHOAL_EXPORT int nvshmemx_team_init(nvshmem_team_t* team, nvshmem_team_config_t* config, long mask, int npes, int index);
SHOAL_EXPORT void nvshmem_team_destroy(nvshmem_team_t team);

// Puts and gets
#define SHOAL_NVSHMEM_DECLARE_MOVES(suffix, Type)                                                                                   \
  SHOAL_EXPORT void nvshmem_##suffix(Type* dest, const Type* source, size_t count, int pe);                                        \
  SHOAL_EXPORT void nvshmem_##suffix##_nbi(Type* dest, const Type* source, size_t count, int pe);                                  \
  SHOAL_EXPORT void nvshmemx_##suffix##_on_stream(Type* dest, const Type* source, size_t count, int pe, cudaStream_t stream);      \
  SHOAL_EXPORT void nvshmemx_##suffix##_nbi_on_stream(Type* dest, const Type* source, size_t count, int pe, cudaStream_t stream);
#define SHOAL_NVSHMEM_DECLARE_STRIDED(suffix, Type)                                                                                          \
  SHOAL_EXPORT void nvshmem_##suffix(Type* dest, const Type* source, ptrdiff_t destStride, ptrdiff_t sourceStride, size_t count, int pe);     \
  SHOAL_EXPORT void nvshmemx_##suffix##_on_stream(Type* dest, const Type* source, ptrdiff_t destStride, ptrdiff_t sourceStride, size_t count, \
                                                  int pe, cudaStream_t stream);
#define SHOAL_NVSHMEM_DECLARE_SIGNALLED(suffix, Type)                                                                                        \
  SHOAL_EXPORT void nvshmemx_##suffix##_signal_on_stream(Type* dest, const Type* source, size_t count, uint64_t* address, uint64_t signal,   \
                                                         int operation, int pe, cudaStream_t stream);                                        \
  SHOAL_EXPORT void nvshmemx_##suffix##_signal_nbi_on_stream(Type* dest, const Type* source, size_t count, uint64_t* address,                \
                                                             uint64_t signal, int operation, int pe, cudaStream_t stream);
#define SHOAL_NVSHMEM_DECLARE_TYPED(name, Type)                                                       \
  SHOAL_NVSHMEM_DECLARE_MOVES(name##_put, Type)                                                       \
  SHOAL_NVSHMEM_DECLARE_MOVES(name##_get, Type)                                                       \
  SHOAL_NVSHMEM_DECLARE_STRIDED(name##_iput, Type)                                                    \
  SHOAL_NVSHMEM_DECLARE_STRIDED(name##_iget, Type)                                                    \
  SHOAL_NVSHMEM_DECLARE_SIGNALLED(name##_put, Type)                                                   \
  SHOAL_EXPORT void nvshmem_##name##_p(Type* dest, const Type value, int pe);                         \
  SHOAL_EXPORT void nvshmemx_##name##_p_on_stream(Type* dest, const Type value, int pe, cudaStream_t stream); \
  SHOAL_EXPORT Type nvshmem_##name##_g(const Type* source, int pe);                                   \
  SHOAL_EXPORT Type nvshmemx_##name##_g_on_stream(const Type* source, int pe, cudaStream_t stream);
#define SHOAL_NVSHMEM_DECLARE_SIZED(bits)        \
  SHOAL_NVSHMEM_DECLARE_MOVES(put##bits, void)   \
  SHOAL_NVSHMEM_DECLARE_MOVES(get##bits, void)   \
  SHOAL_NVSHMEM_DECLARE_STRIDED(iput##bits, void) \
  SHOAL_NVSHMEM_DECLARE_STRIDED(iget##bits, void) \
  SHOAL_NVSHMEM_DECLARE_SIGNALLED(put##bits, void)
SHOAL_NVSHMEM_RMA_TYPES(SHOAL_NVSHMEM_DECLARE_TYPED)
SHOAL_NVSHMEM_SIZES(SHOAL_NVSHMEM_DECLARE_SIZED)
SHOAL_NVSHMEM_DECLARE_MOVES(putmem, void)
SHOAL_NVSHMEM_DECLARE_MOVES(getmem, void)
SHOAL_NVSHMEM_DECLARE_SIGNALLED(putmem, void)

// Atomics
#define SHOAL_NVSHMEM_DECLARE_BITWISE_AMO(name, Type)                                     \
  SHOAL_EXPORT void nvshmem_##name##_atomic_and(Type* dest, Type value, int pe);          \
  SHOAL_EXPORT void nvshmem_##name##_atomic_or(Type* dest, Type value, int pe);           \
  SHOAL_EXPORT void nvshmem_##name##_atomic_xor(Type* dest, Type value, int pe);          \
  SHOAL_EXPORT Type nvshmem_##name##_atomic_fetch_and(Type* dest, Type value, int pe);    \
  SHOAL_EXPORT Type nvshmem_##name##_atomic_fetch_or(Type* dest, Type value, int pe);     \
  SHOAL_EXPORT Type nvshmem_##name##_atomic_fetch_xor(Type* dest, Type value, int pe);
#define SHOAL_NVSHMEM_DECLARE_STANDARD_AMO(name, Type)                                                  \
  SHOAL_EXPORT void nvshmem_##name##_atomic_inc(Type* dest, int pe);                                    \
  SHOAL_EXPORT Type nvshmem_##name##_atomic_fetch_inc(Type* dest, int pe);                              \
  SHOAL_EXPORT void nvshmem_##name##_atomic_add(Type* dest, Type value, int pe);                        \
  SHOAL_EXPORT Type nvshmem_##name##_atomic_fetch_add(Type* dest, Type value, int pe);                  \
  SHOAL_EXPORT Type nvshmem_##name##_atomic_compare_swap(Type* dest, Type condition, Type value, int pe);
#define SHOAL_NVSHMEM_DECLARE_EXTENDED_AMO(name, Type)                                 \
  SHOAL_EXPORT Type nvshmem_##name##_atomic_fetch(const Type* dest, int pe);           \
  SHOAL_EXPORT void nvshmem_##name##_atomic_set(Type* dest, Type value, int pe);       \
  SHOAL_EXPORT Type nvshmem_##name##_atomic_swap(Type* dest, Type value, int pe);
SHOAL_NVSHMEM_BITWISE_AMO_TYPES(SHOAL_NVSHMEM_DECLARE_BITWISE_AMO)
SHOAL_NVSHMEM_STANDARD_AMO_TYPES(SHOAL_NVSHMEM_DECLARE_STANDARD_AMO)
SHOAL_NVSHMEM_EXTENDED_AMO_TYPES(SHOAL_NVSHMEM_DECLARE_EXTENDED_AMO)

// Waiting for values
#define SHOAL_NVSHMEM_DECLARE_WAIT(name, Type)                                                                                              \
  SHOAL_EXPORT void nvshmemx_##name##_wait_until_on_stream(Type* variable, int comparison, Type value, cudaStream_t stream);                \
  SHOAL_EXPORT void nvshmemx_##name##_wait_until_all_on_stream(Type* variables, size_t count, const int* status, int comparison, Type value, \
                                                               cudaStream_t stream);                                                        \
  SHOAL_EXPORT void nvshmemx_##name##_wait_until_all_vector_on_stream(Type* variables, size_t count, const int* status, int comparison,     \
                                                                      Type* values, cudaStream_t stream);
SHOAL_NVSHMEM_WAIT_TYPES(SHOAL_NVSHMEM_DECLARE_WAIT)

// Collectives
#define SHOAL_NVSHMEM_DECLARE_COLLECTIVE(name, Type)                                                                          \
  SHOAL_EXPORT int nvshmem_##name(nvshmem_team_t team, Type* dest, const Type* source, size_t count);                        \
  SHOAL_EXPORT int nvshmemx_##name##_on_stream(nvshmem_team_t team, Type* dest, const Type* source, size_t count, cudaStream_t stream);
#define SHOAL_NVSHMEM_DECLARE_ROOTED(name, Type)                                                                              \
  SHOAL_EXPORT int nvshmem_##name(nvshmem_team_t team, Type* dest, const Type* source, size_t count, int root);              \
  SHOAL_EXPORT int nvshmemx_##name##_on_stream(nvshmem_team_t team, Type* dest, const Type* source, size_t count, int root,  \
                                               cudaStream_t stream);
#define SHOAL_NVSHMEM_DECLARE_EXCHANGES(name, Type)           \
  SHOAL_NVSHMEM_DECLARE_COLLECTIVE(name##_alltoall, Type)     \
  SHOAL_NVSHMEM_DECLARE_COLLECTIVE(name##_fcollect, Type)     \
  SHOAL_NVSHMEM_DECLARE_ROOTED(name##_broadcast, Type)
#define SHOAL_NVSHMEM_DECLARE_REDUCTION(name, Type, operation)       \
  SHOAL_NVSHMEM_DECLARE_COLLECTIVE(name##_##operation##_reduce, Type) \
  SHOAL_NVSHMEM_DECLARE_COLLECTIVE(name##_##operation##_reducescatter, Type)
#define SHOAL_NVSHMEM_DECLARE_BITWISE_REDUCTIONS(name, Type) \
  SHOAL_NVSHMEM_DECLARE_REDUCTION(name, Type, and)           \
  SHOAL_NVSHMEM_DECLARE_REDUCTION(name, Type, or)            \
  SHOAL_NVSHMEM_DECLARE_REDUCTION(name, Type, xor)
#define SHOAL_NVSHMEM_DECLARE_REDUCTIONS(name, Type) \
  SHOAL_NVSHMEM_DECLARE_REDUCTION(name, Type, max)   \
  SHOAL_NVSHMEM_DECLARE_REDUCTION(name, Type, min)   \
  SHOAL_NVSHMEM_DECLARE_REDUCTION(name, Type, sum)   \
  SHOAL_NVSHMEM_DECLARE_REDUCTION(name, Type, prod)
SHOAL_NVSHMEM_RMA_TYPES(SHOAL_NVSHMEM_DECLARE_EXCHANGES)
SHOAL_NVSHMEM_BITWISE_REDUCE_TYPES(SHOAL_NVSHMEM_DECLARE_BITWISE_REDUCTIONS)
SHOAL_NVSHMEM_REDUCE_TYPES(SHOAL_NVSHMEM_DECLARE_REDUCTIONS)
SHOAL_NVSHMEM_DECLARE_COLLECTIVE(alltoallmem, void)
SHOAL_NVSHMEM_DECLARE_COLLECTIVE(fcollectmem, void)
SHOAL_NVSHMEM_DECLARE_ROOTED(broadcastmem, void)

// What the library writes its log with; nothing but their names is NVSHMEM's.
SHOAL_EXPORT void nvshmem_debug_log(int level, unsigned long flags, const char* function, int line, const char* format, ...);

// What only the software device has: why waiting is over for this process (a PE has ended, say), or NULL.
SHOAL_EXPORT const char* shoalSimNvshmemFailure(void);
// Faults of this process from now on, as SHOAL_SIM_FAULT describes them; NULL for none. An nvshmemx_status.
SHOAL_EXPORT int shoalSimNvshmemFault(const char* faults);

#ifdef __cplusplus
}
#endif
