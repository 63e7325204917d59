/*
 * Tests from C what NCCL does wrong: `ncclFaults LIBNCCL`.
 *
 * One rank: every type with sum, avg and preMulSum over many counts, in place and out of place. Two ranks of one
 * process, if there are two GPUs: parts of many sizes, in plain memory and in symmetric windows. First prints one line
 * of JSON with the version, then one line for each trial. `report` explains the fields.
 *
 * `ncclFaults LIBNCCL COLLECTIVE OP DTYPE COUNT`, all as numbers: one trial of two ranks in windows, which may break
 * the communicator.
 */
#include "library.h"
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <unistd.h>

typedef int result_t;
typedef void* comm_t;

#define FUNCTIONS(X)                                                                                             \
  X(version, "ncclGetVersion", result_t, (int*))                                                                 \
  X(error_string, "ncclGetErrorString", const char*, (result_t))                                                 \
  X(init_all, "ncclCommInitAll", result_t, (comm_t*, int, const int*))                                           \
  X(destroy, "ncclCommDestroy", result_t, (comm_t))                                                              \
  X(abort, "ncclCommAbort", result_t, (comm_t))                                                                  \
  X(group_start, "ncclGroupStart", result_t, (void))                                                             \
  X(group_end, "ncclGroupEnd", result_t, (void))                                                                 \
  X(all_reduce, "ncclAllReduce", result_t, (const void*, void*, size_t, int, int, comm_t, cudaStream_t))         \
  X(reduce, "ncclReduce", result_t, (const void*, void*, size_t, int, int, int, comm_t, cudaStream_t))           \
  X(reduce_scatter, "ncclReduceScatter", result_t, (const void*, void*, size_t, int, int, comm_t, cudaStream_t)) \
  X(all_gather, "ncclAllGather", result_t, (const void*, void*, size_t, int, comm_t, cudaStream_t))              \
  X(create_pre_mul_sum, "ncclRedOpCreatePreMulSum", result_t, (int*, void*, int, int, comm_t))                   \
  X(destroy_op, "ncclRedOpDestroy", result_t, (int, comm_t))
/* NULL before 2.19 and 2.27. */
#define OPTIONAL_FUNCTIONS(X)                                                                  \
  X(mem_alloc, "ncclMemAlloc", result_t, (void**, size_t))                                     \
  X(mem_free, "ncclMemFree", result_t, (void*))                                                \
  X(window_register, "ncclCommWindowRegister", result_t, (comm_t, void*, size_t, void**, int)) \
  X(window_deregister, "ncclCommWindowDeregister", result_t, (comm_t, void*))

static struct {
  FUNCTIONS(MEMBER)
  OPTIONAL_FUNCTIONS(MEMBER)
} nccl;

static void check_cuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) fail(call, cudaGetErrorName(status));
}
#define CUDA(call) check_cuda(call, #call)

static void check_nccl(result_t status, const char* call) {
  if (status != 0) fail(call, nccl.error_string(status));
}
#define NCCL(call) check_nccl(call, #call)

static void load(const char* path) {
  void* library = open_library(path);
#define LOAD(name, symbol_name, result, parameters) nccl.name = symbol(library, symbol_name);
#define LOAD_OPTIONAL(name, symbol_name, result, parameters) nccl.name = dlsym(library, symbol_name);
  FUNCTIONS(LOAD)
  OPTIONAL_FUNCTIONS(LOAD_OPTIONAL)
}

/* The values of ncclDataType_t in order. Floats have the bits of the mantissa and the bias of the exponent. */
static const struct type {
  const char* name;
  int bytes, mantissa, bias;
} types[] = {
    {"i8", 1, 0, 0},      {"u8", 1, 0, 0},     {"i32", 4, 0, 0},    {"u32", 4, 0, 0},
    {"i64", 8, 0, 0},     {"u64", 8, 0, 0},    {"f16", 2, 10, 15},  {"f32", 4, 23, 127},
    {"f64", 8, 52, 1023}, {"bf16", 2, 7, 127}, {"f8e4m3", 1, 3, 7}, {"f8e5m2", 1, 2, 15},
};
enum { TYPES = sizeof types / sizeof *types, SUM = 0, AVG = 4, PRE_MUL_SUM = -1, NO_OP = -2 };
enum { NCCL_INT32 = 2, HOST_SCALAR = 1, SYMMETRIC_WINDOW = 1, UNTOUCHED = 0xa5 };

enum collective { ALL_REDUCE, REDUCE, REDUCE_SCATTER, ALL_GATHER };
static const char* const collective_names[] = {"allReduce", "reduce", "reduceScatter", "allGather"};

/* Encodes a whole number from 1 to 10, which every type holds exactly. */
static void encode(const struct type* type, unsigned number, uint8_t* out) {
  uint64_t bits = number;
  if (type->mantissa > 0) {
    int exponent = 0;
    while (number >> (exponent + 1)) ++exponent;
    bits = ((uint64_t)(exponent + type->bias) << type->mantissa) +
           (((uint64_t)number << type->mantissa >> exponent) - ((uint64_t)1 << type->mantissa));
  }
  memcpy(out, &bits, (size_t)type->bytes);
}

static unsigned value_of(int rank, size_t index) { return 1 + (unsigned)((index + (size_t)rank) % 5); }

struct trial {
  enum collective collective;
  int dtype, op;
  size_t count;
  int in_place, world;
  /* NULL for plain memory. */
  const char* memory;
};

struct rank {
  comm_t comm;
  cudaStream_t stream;
  uint8_t *plain, *window_memory;
  void* window;
};

enum { MOST_BYTES = 2 * 8 * 1048600 + 4096 };
static struct rank ranks[2];
static uint8_t *host_before, *host_after;

static size_t receive_count(const struct trial* trial) {
  return trial->collective == ALL_GATHER ? trial->count * (size_t)trial->world : trial->count;
}
static size_t send_count(const struct trial* trial) {
  return trial->collective == REDUCE_SCATTER ? trial->count * (size_t)trial->world : trial->count;
}

/* The element that a rank sends at an index. For averages all ranks send the same. */
static unsigned given_value(const struct trial* trial, int rank, size_t index) {
  return value_of(trial->op == AVG ? 0 : rank, index);
}

/* The element that a rank must receive at an index. */
static unsigned expected_value(const struct trial* trial, int rank, size_t index) {
  if (trial->collective == ALL_GATHER) return value_of((int)(index / trial->count), index % trial->count);
  if (trial->collective == REDUCE_SCATTER) index += (size_t)rank * trial->count;
  unsigned sum = 0;
  for (int one = 0; one < trial->world; ++one) sum += given_value(trial, one, index);
  return trial->op == PRE_MUL_SUM ? 2 * sum : trial->op == AVG ? sum / (unsigned)trial->world : sum;
}

/* The two buffers of a rank are the halves of one allocation. 16 guard elements surround each buffer. */
static const size_t half = MOST_BYTES;
static size_t guard_of(const struct trial* trial) { return 16 * (size_t)types[trial->dtype].bytes; }

static uint8_t* memory_of(const struct trial* trial, int rank) {
  return trial->memory == NULL ? ranks[rank].plain : ranks[rank].window_memory;
}

static result_t call(const struct trial* trial, int rank) {
  struct rank* self = &ranks[rank];
  uint8_t* send = memory_of(trial, rank) + guard_of(trial);
  void* receive = trial->in_place ? send : send + half;
  int op = trial->op;
  result_t status = 0;
  if (op == PRE_MUL_SUM) {
    uint8_t two[8] = {0};
    encode(&types[trial->dtype], 2, two);
    status = nccl.create_pre_mul_sum(&op, two, trial->dtype, HOST_SCALAR, self->comm);
    if (status != 0) return status;
  }
  switch (trial->collective) {
    case ALL_REDUCE:
      status = nccl.all_reduce(send, receive, trial->count, trial->dtype, op, self->comm, self->stream);
      break;
    case REDUCE:
      status = nccl.reduce(send, receive, trial->count, trial->dtype, op, 0, self->comm, self->stream);
      break;
    case REDUCE_SCATTER:
      status = nccl.reduce_scatter(send, receive, trial->count, trial->dtype, op, self->comm, self->stream);
      break;
    case ALL_GATHER:
      status = nccl.all_gather(send, receive, trial->count, trial->dtype, self->comm, self->stream);
      break;
  }
  if (trial->op == PRE_MUL_SUM) nccl.destroy_op(op, self->comm);
  return status;
}

static void fill(const struct trial* trial, int rank) {
  const struct type* type = &types[trial->dtype];
  const size_t bytes = (size_t)type->bytes, guard = guard_of(trial);
  const size_t sent = send_count(trial) * bytes, received = receive_count(trial) * bytes;
  uint8_t* memory = memory_of(trial, rank);
  memset(host_before, UNTOUCHED, sent + 2 * guard);
  for (size_t i = 0; i < send_count(trial); ++i)
    encode(type, given_value(trial, rank, i), host_before + guard + i * bytes);
  CUDA(cudaMemcpy(memory, host_before, sent + 2 * guard, cudaMemcpyHostToDevice));
  CUDA(cudaMemset(memory + half, UNTOUCHED, received + 2 * guard));
}

/*
 * Prints a line of JSON. `outcome` is right, refused or wrong. If elements are wrong, `wrong` counts those of this
 * rank, `first` is the first index, and `found` says what they hold: the previous content ("untouched") or something
 * else. `beside` counts changed bytes around the buffer.
 */
static void report(const struct trial* trial, int rank, const char* outcome, const char* more) {
  const char* op = trial->op == NO_OP ? "null"
                   : trial->op == SUM ? "\"sum\""
                   : trial->op == AVG ? "\"avg\""
                                      : "\"preMulSum\"";
  printf(
      "{\"collective\":\"%s\",\"op\":%s,\"dtype\":\"%s\",\"count\":%zu,\"inPlace\":%s,\"ranks\":%d,\"memory\":\"%s\",",
      collective_names[trial->collective], op, types[trial->dtype].name, trial->count,
      trial->in_place ? "true" : "false", trial->world, trial->memory == NULL ? "plain" : trial->memory);
  printf("\"rank\":%d,\"outcome\":\"%s\"%s}\n", rank, outcome, more);
}

static void report_refusal(const struct trial* trial, int rank, result_t status) {
  char more[80];
  snprintf(more, sizeof more, ",\"status\":%d", status);
  report(trial, rank, "refused", more);
}

static void check(const struct trial* trial, int rank) {
  const struct type* type = &types[trial->dtype];
  const size_t bytes = (size_t)type->bytes, guard = guard_of(trial), count = receive_count(trial);
  const uint8_t* memory = memory_of(trial, rank) + (trial->in_place ? 0 : half);
  CUDA(cudaMemcpy(host_after, memory, count * bytes + 2 * guard, cudaMemcpyDeviceToHost));
  size_t wrong = 0, first = 0, untouched = 0, beside = 0;
  for (size_t i = 0; i < count; ++i) {
    uint8_t expected[8], before[8];
    encode(type, expected_value(trial, rank, i), expected);
    const uint8_t* found = host_after + guard + i * bytes;
    if (memcmp(found, expected, bytes) == 0) continue;
    if (wrong++ == 0) first = i;
    if (trial->in_place) encode(type, given_value(trial, rank, i), before);
    else memset(before, UNTOUCHED, sizeof before);
    untouched += memcmp(found, before, bytes) == 0;
  }
  for (size_t i = 0; i < guard; ++i) {
    beside += host_after[i] != UNTOUCHED;
    beside += host_after[guard + count * bytes + i] != UNTOUCHED;
  }
  if (wrong == 0 && beside == 0) return report(trial, rank, "right", "");
  char more[160];
  snprintf(more, sizeof more, ",\"wrong\":%zu,\"first\":%zu,\"found\":\"%s\",\"beside\":%zu", wrong, first,
           wrong == 0           ? "nothing"
           : untouched == wrong ? "untouched"
           : untouched == 0     ? "other"
                                : "both",
           beside);
  report(trial, rank, "wrong", more);
}

static void select_rank(int rank) { CUDA(cudaSetDevice(rank)); }

/* Creates a new communicator if NCCL cannot be used after it refused a call. */
static void recover(void) {
  struct trial probe = {ALL_REDUCE, NCCL_INT32, SUM, 1, 0, 1, NULL};
  if (call(&probe, 0) == 0 && cudaStreamSynchronize(ranks[0].stream) == cudaSuccess) return;
  nccl.abort(ranks[0].comm);
  NCCL(nccl.init_all(&ranks[0].comm, 1, NULL));
}

static void fill_all(const struct trial* trial) {
  for (int rank = 0; rank < trial->world; ++rank) {
    select_rank(rank);
    fill(trial, rank);
    CUDA(cudaDeviceSynchronize());
  }
}

static void run(const struct trial* trial) {
  fill_all(trial);
  if (trial->world == 1) {
    const result_t status = call(trial, 0);
    if (status != 0) {
      report_refusal(trial, 0, status);
      return recover();
    }
  } else {
    NCCL(nccl.group_start());
    for (int rank = 0; rank < trial->world; ++rank) NCCL(call(trial, rank));
    NCCL(nccl.group_end());
  }
  for (int rank = 0; rank < trial->world; ++rank) {
    select_rank(rank);
    CUDA(cudaStreamSynchronize(ranks[rank].stream));
    check(trial, rank);
  }
}

/* Runs one trial with both ranks in windows, which NCCL may refuse. */
static void run_once(const struct trial* trial) {
  fill_all(trial);
  NCCL(nccl.group_start());
  result_t status = 0;
  for (int rank = 0; rank < 2 && status == 0; ++rank) status = call(trial, rank);
  const result_t ended = nccl.group_end();
  if (status == 0) status = ended;
  for (int rank = 0; rank < 2; ++rank) {
    if (status != 0) {
      report_refusal(trial, rank, status);
      continue;
    }
    select_rank(rank);
    CUDA(cudaStreamSynchronize(ranks[rank].stream));
    check(trial, rank);
  }
}

static void open_ranks(int world) {
  comm_t comms[2];
  NCCL(nccl.init_all(comms, world, NULL));
  for (int rank = 0; rank < world; ++rank) {
    struct rank* self = &ranks[rank];
    select_rank(rank);
    self->comm = comms[rank];
    CUDA(cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void**)&self->plain, 2 * half));
  }
}

static void close_ranks(int world) {
  for (int rank = 0; rank < world; ++rank) {
    select_rank(rank);
    NCCL(nccl.destroy(ranks[rank].comm));
    CUDA(cudaStreamDestroy(ranks[rank].stream));
    CUDA(cudaFree(ranks[rank].plain));
  }
}

/* Registration waits for the other rank, so each rank registers on its own thread. */
static void* open_window(void* argument) {
  struct rank* self = argument;
  select_rank((int)(self - ranks));
  NCCL(nccl.mem_alloc((void**)&self->window_memory, 2 * half));
  NCCL(nccl.window_register(self->comm, self->window_memory, 2 * half, &self->window, SYMMETRIC_WINDOW));
  return NULL;
}

static void* close_window(void* argument) {
  struct rank* self = argument;
  select_rank((int)(self - ranks));
  NCCL(nccl.window_deregister(self->comm, self->window));
  NCCL(nccl.mem_free(self->window_memory));
  return NULL;
}

static void on_each_rank(void* (*work)(void*)) {
  pthread_t threads[2];
  for (int rank = 0; rank < 2; ++rank) {
    if (pthread_create(&threads[rank], NULL, work, &ranks[rank]) != 0) fail("pthread_create", "no thread");
  }
  for (int rank = 0; rank < 2; ++rank) pthread_join(threads[rank], NULL);
}

static void one_rank(void) {
  static const size_t counts[] = {0,     1,     7,      8,      1001,   1024,   8191,   8193,
                                  16385, 65537, 131072, 131109, 262145, 524289, 1048577};
  static const int ops[] = {SUM, AVG, PRE_MUL_SUM};
  open_ranks(1);
  for (int dtype = 0; dtype < TYPES; ++dtype) {
    for (size_t op = 0; op < sizeof ops / sizeof *ops; ++op) {
      for (size_t at = 0; at < sizeof counts / sizeof *counts; ++at) {
        for (enum collective collective = ALL_REDUCE; collective <= REDUCE_SCATTER; ++collective) {
          /* All three collectives share code, so one suffices for large counts and for sums. */
          if (collective != ALL_REDUCE && (counts[at] > 131109 || ops[op] == SUM)) continue;
          for (int in_place = 0; in_place < 2; ++in_place) {
            const struct trial trial = {collective, dtype, ops[op], counts[at], in_place, 1, NULL};
            run(&trial);
          }
        }
      }
    }
  }
  close_ranks(1);
}

static void two_ranks(void) {
  static const size_t sizes[] = {1,     2,     3,     4,      5,      6,      7,      8,      9,    12,
                                 15,    16,    17,    24,     31,     33,     63,     65,     100,  127,
                                 255,   257,   1001,  1004,   1008,   4097,   4099,   8193,   9999, 16385,
                                 32769, 65537, 65544, 131109, 131112, 262145, 524289, 1048577};
  static const int dtypes[] = {1 /* u8 */, 6 /* f16 */, 9 /* bf16 */, 10 /* f8e4m3 */, 11 /* f8e5m2 */, 2 /* i32 */,
                               8 /* f64 */};
  const int has_windows = nccl.mem_alloc != NULL && nccl.window_register != NULL;
  open_ranks(2);
  if (has_windows) on_each_rank(open_window);
  for (int in_window = 0; in_window <= has_windows; ++in_window) {
    for (size_t dtype = 0; dtype < sizeof dtypes / sizeof *dtypes; ++dtype) {
      for (size_t at = 0; at < sizeof sizes / sizeof *sizes; ++at) {
        const size_t bytes = (size_t)types[dtypes[dtype]].bytes;
        /* All types use the same sizes in bytes, if a whole number of elements fits. */
        if (sizes[at] % bytes != 0 && sizes[at] > 64) continue;
        const size_t count = sizes[at] > 64 ? sizes[at] / bytes : sizes[at];
        const enum collective collectives[] = {ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER};
        for (int one = 0; one < 3; ++one) {
          const int op = collectives[one] == ALL_GATHER ? NO_OP : SUM;
          const struct trial trial = {collectives[one], dtypes[dtype], op, count, 0, 2, in_window ? "window" : NULL};
          run(&trial);
        }
      }
    }
  }
  if (has_windows) on_each_rank(close_window);
  close_ranks(2);
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 6) return fprintf(stderr, "usage: ncclFaults LIBNCCL [COLLECTIVE OP DTYPE COUNT]\n"), 2;
  load(argv[1]);
  int version = 0, devices = 0;
  NCCL(nccl.version(&version));
  CUDA(cudaGetDeviceCount(&devices));
  host_before = malloc(half);
  host_after = malloc(half);
  if (host_before == NULL || host_after == NULL) fail("malloc", "no memory");
  if (argc == 6) {
    const struct trial trial = {
        (enum collective)atoi(argv[2]), atoi(argv[4]), atoi(argv[3]), (size_t)atol(argv[5]), 0, 2, "window"};
    open_ranks(2);
    on_each_rank(open_window);
    run_once(&trial);
    fflush(stdout);
    /* After NCCL refused a call, a normal exit may hang. */
    _exit(0);
  }
  printf("{\"version\":%d,\"devices\":%d,\"windows\":%s}\n", version, devices,
         nccl.window_register != NULL ? "true" : "false");
  one_rank();
  if (devices >= 2) two_ranks();
  return 0;
}
