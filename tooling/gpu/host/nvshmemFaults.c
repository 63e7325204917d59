/* Tests from C what NVSHMEM does wrong: `nvshmemFaults LIBCUDA LIBNVSHMEM PES`.
 *
 * Starts PES processes, one per PE. Prints a line of JSON for each PE's part of each question:
 *
 *   reduce          of 1 byte to 512 KiB, in place and out of place: which elements are wrong
 *   reduceScatter   the same, and how much of NVSHMEM's memory below the first buffer it changed
 *   afterwards      small reduceScatters on a team, with and without a large one on another team before
 */
#include "library.h"
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvshmemStart.h"

enum { WIDTHS = 4, TEAMS = 3 };

typedef int (*reduction_t)(int, void*, const void*, size_t);

#define NVSHMEM_FUNCTIONS(X)                                                      \
  X(get_unique_id, "nvshmemx_get_uniqueid", int, (struct unique_id*))             \
  X(set_unique_id, "nvshmemx_set_attr_uniqueid_args", int,                        \
    (int, int, const struct unique_id*, struct init_attributes*))                 \
  X(init, "nvshmemx_hostlib_init_attr", int, (unsigned, struct init_attributes*)) \
  X(finalize, "nvshmemx_hostlib_finalize", void, (void))                          \
  X(allocate, "nvshmem_malloc", void*, (size_t))                                  \
  X(barrier, "nvshmem_barrier_all", void, (void))
#define CUDA_FUNCTIONS(X)                                                       \
  X(init, "cuInit", CUresult, (unsigned))                                       \
  X(retain, "cuDevicePrimaryCtxRetain", CUresult, (CUcontext*, CUdevice))       \
  X(set_current, "cuCtxSetCurrent", CUresult, (CUcontext))                      \
  X(to_device, "cuMemcpyHtoD_v2", CUresult, (CUdeviceptr, const void*, size_t)) \
  X(to_host, "cuMemcpyDtoH_v2", CUresult, (void*, CUdeviceptr, size_t))         \
  X(fill, "cuMemsetD8_v2", CUresult, (CUdeviceptr, unsigned char, size_t))      \
  X(synchronize, "cuCtxSynchronize", CUresult, (void))                          \
  X(range, "cuMemGetAddressRange_v2", CUresult, (CUdeviceptr*, size_t*, CUdeviceptr))

static struct {
  NVSHMEM_FUNCTIONS(MEMBER)
  reduction_t reduce[WIDTHS], reduce_scatter[WIDTHS];
} nvshmem;
static struct {
  CUDA_FUNCTIONS(MEMBER)
} cuda;

static const char* const types[WIDTHS] = {"uint8", "uint16", "uint32", "uint64"};
static const char* const teams[TEAMS] = {"world", "shared", "node"};
enum { UNTOUCHED = 0xa5, MOST_BYTES = 1 << 20, MOST_PES = 8 };

static int pe, pes;
static uint8_t *target, *source, *host;
static CUdeviceptr heap;
static size_t kept;

static void check(CUresult status, const char* call) {
  if (status != CUDA_SUCCESS) {
    char number[16];
    snprintf(number, sizeof number, "%d", (int)status);
    fail(call, number);
  }
}
#define CUDA(call) check(call, #call)

static void load(const char* cuda_path, const char* nvshmem_path) {
  void* library = open_library(cuda_path);
#define LOAD_CUDA(name, symbol_name, result, parameters) cuda.name = symbol(library, symbol_name);
#define LOAD_NVSHMEM(name, symbol_name, result, parameters) nvshmem.name = symbol(library, symbol_name);
  CUDA_FUNCTIONS(LOAD_CUDA)
  library = open_library(nvshmem_path);
  NVSHMEM_FUNCTIONS(LOAD_NVSHMEM)
  for (int width = 0; width < WIDTHS; ++width) {
    char name[64];
    snprintf(name, sizeof name, "nvshmem_%s_xor_reduce", types[width]);
    *(void**)&nvshmem.reduce[width] = symbol(library, name);
    snprintf(name, sizeof name, "nvshmem_%s_xor_reducescatter", types[width]);
    *(void**)&nvshmem.reduce_scatter[width] = symbol(library, name);
  }
}

/* Returns one byte of a PE's input. Each question has new bytes. */
static uint8_t given(unsigned seed, int of, size_t at) {
  uint64_t x = ((uint64_t)seed << 40) + ((uint64_t)of << 32) + at + 1;
  x *= 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return (uint8_t)(x >> 48);
}

static void prepare(unsigned seed, size_t source_bytes, size_t target_bytes, int in_place) {
  for (size_t at = 0; at < source_bytes; ++at) host[at] = given(seed, pe, at);
  CUDA(cuda.fill((CUdeviceptr)target, UNTOUCHED, target_bytes + 64));
  CUDA(cuda.to_device((CUdeviceptr)(in_place ? target : source), host, source_bytes));
  CUDA(cuda.synchronize());
  nvshmem.barrier();
}

/* Counts the bytes of the target that are not the xor of all inputs, and the bytes after it that changed. */
static size_t wrong_bytes(unsigned seed, size_t bytes, size_t from, size_t* first, size_t* beside) {
  size_t wrong = 0;
  *beside = 0;
  CUDA(cuda.to_host(host, (CUdeviceptr)target, bytes + 64));
  for (size_t at = 0; at < bytes; ++at) {
    uint8_t expected = 0;
    for (int of = 0; of < pes; ++of) expected ^= given(seed, of, from + at);
    if (host[at] == expected) continue;
    if (wrong++ == 0) *first = at;
  }
  for (size_t at = bytes; at < bytes + 64; ++at) *beside += host[at] != UNTOUCHED;
  return wrong;
}

static void say(const char* line) {
  /* Each line is one write, so that the lines of the PEs do not mix. */
  if (write(STDOUT_FILENO, line, strlen(line)) < 0) exit(1);
}

static unsigned next_seed = 1;

static void ask_reduce(int team, int width, size_t bytes, int in_place) {
  const unsigned seed = next_seed++;
  size_t first = 0, beside = 0;
  prepare(seed, bytes, bytes, in_place);
  const int status = nvshmem.reduce[width](team, target, in_place ? target : source, bytes >> width);
  nvshmem.barrier();
  const size_t wrong = wrong_bytes(seed, bytes, 0, &first, &beside);
  char line[320];
  snprintf(line, sizeof line,
           "{\"question\":\"reduce\",\"pes\":%d,\"pe\":%d,\"team\":\"%s\",\"type\":\"%s\",\"bytes\":%zu,\"inPlace\":%s,"
           "\"status\":%d,\"wrong\":%zu,\"first\":%zu,\"beside\":%zu}\n",
           pes, pe, teams[team], types[width], bytes, in_place ? "true" : "false", status, wrong, first, beside);
  say(line);
}

/* `bytes` is the size of one PE's part. */
static size_t reduce_scatter(int team, int width, size_t bytes, int* status) {
  const unsigned seed = next_seed++;
  size_t first, beside;
  prepare(seed, bytes * (size_t)pes, bytes, 0);
  *status = nvshmem.reduce_scatter[width](team, target, source, bytes >> width);
  nvshmem.barrier();
  return wrong_bytes(seed, bytes, bytes * (size_t)pe, &first, &beside) + beside;
}

static void ask_reduce_scatter(int team, int width, size_t bytes) {
  uint8_t* before = malloc(kept);
  uint8_t* after = malloc(kept);
  if (before == NULL || after == NULL) fail("malloc", "no memory");
  CUDA(cuda.to_host(before, heap, kept));
  int status;
  const size_t wrong = reduce_scatter(team, width, bytes, &status);
  CUDA(cuda.to_host(after, heap, kept));
  size_t changed = 0, first = 0, last = 0;
  for (size_t at = 0; at < kept; ++at) {
    if (before[at] == after[at]) continue;
    if (changed++ == 0) first = at;
    last = at;
  }
  free(before);
  free(after);
  char line[400];
  snprintf(line, sizeof line,
           "{\"question\":\"reduceScatter\",\"pes\":%d,\"pe\":%d,\"team\":\"%s\",\"type\":\"%s\",\"bytes\":%zu,"
           "\"status\":%d,\"wrong\":%zu,\"kept\":%zu,\"changed\":%zu,\"changedFrom\":%zu,\"changedTo\":%zu}\n",
           pes, pe, teams[team], types[width], bytes, status, wrong, kept, changed, first, last);
  say(line);
}

static void ask_afterwards(size_t large) {
  enum { ROUNDS = 400 };
  int wrong = 0, wrong_large = 0, status;
  for (int round = 0; round < ROUNDS; ++round) {
    if (large > 0) wrong_large += reduce_scatter(0, 2, large, &status) > 0;
    wrong += reduce_scatter(1, 2, 4, &status) > 0;
  }
  char line[240];
  snprintf(
      line, sizeof line,
      "{\"question\":\"afterwards\",\"pes\":%d,\"pe\":%d,\"bytes\":%zu,\"rounds\":%d,\"wrong\":%d,\"wrongLarge\":%d}\n",
      pes, pe, large, ROUNDS, wrong, wrong_large);
  say(line);
}

static void ask(void) {
  static const size_t sizes[] = {8,     1000,  8184,  8200,  16376, 16392, 21840,  21848,  32760,
                                 32768, 32776, 40000, 65536, 98304, 98312, 131072, 262144, 524288};
  for (size_t at = 0; at < sizeof sizes / sizeof *sizes; ++at) {
    for (int team = 0; team < TEAMS; ++team) {
      for (int width = 0; width < WIDTHS; width += team == 0 ? 1 : 2) {
        for (int in_place = 0; in_place < 2; ++in_place) ask_reduce(team, width, sizes[at], in_place);
      }
    }
  }
  static const size_t parts[] = {4, 4096, 65536, 87376, 87384, 131072, 131080, 262144, 262144 * 3, MOST_BYTES};
  /* The first questions are not known to change other memory. */
  ask_afterwards(0);
  ask_afterwards(65536);
  for (size_t at = 0; at < sizeof parts / sizeof *parts; ++at) ask_reduce_scatter(0, 2, parts[at]);
  ask_afterwards(MOST_BYTES);
}

static int run(const struct unique_id* id) {
  CUcontext context;
  CUDA(cuda.init(0));
  CUDA(cuda.retain(&context, pe));
  CUDA(cuda.set_current(context));
  struct init_attributes attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.version = VERSION(struct init_attributes);
  attributes.arguments.version = VERSION(attributes.arguments);
  attributes.arguments.by_id.version = VERSION(attributes.arguments.by_id);
  if (nvshmem.set_unique_id(pe, pes, id, &attributes) != 0) fail("nvshmemx_set_attr_uniqueid_args", "failed");
  if (nvshmem.init(INIT_WITH_UNIQUE_ID, &attributes) != 0) fail("nvshmemx_hostlib_init_attr", "failed");
  target = nvshmem.allocate(MOST_BYTES + 4096);
  source = nvshmem.allocate((size_t)MOST_BYTES * (size_t)pes);
  host = malloc((size_t)MOST_BYTES * (size_t)pes + 4096);
  if (target == NULL || source == NULL || host == NULL) fail("nvshmem_malloc", "no memory");
  size_t mapped;
  CUDA(cuda.range(&heap, &mapped, (CUdeviceptr)target));
  kept = (size_t)(target - (uint8_t*)heap);
  ask();
  nvshmem.barrier();
  nvshmem.finalize();
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: nvshmemFaults LIBCUDA LIBNVSHMEM PES\n"), 2;
  pes = atoi(argv[3]);
  if (pes < 1 || pes > MOST_PES) return fprintf(stderr, "PES is from 1 to %d\n", MOST_PES), 2;
  /* The processes fork before NVSHMEM is loaded. PE 0 makes the id, and serves it until it ends. */
  int pipes[MOST_PES][2];
  for (int other = 1; other < pes && pe == 0; ++other) {
    if (pipe(pipes[other]) != 0) fail("pipe", "failed");
    const pid_t child = fork();
    if (child < 0) fail("fork", "failed");
    if (child == 0) pe = other;
  }
  alarm(120);
  load(argv[1], argv[2]);
  struct unique_id id = {VERSION(struct unique_id), {0}};
  if (pe != 0) {
    if (read(pipes[pe][0], &id, sizeof id) != sizeof id) fail("read", "no id");
    return run(&id);
  }
  if (nvshmem.get_unique_id(&id) != 0) fail("nvshmemx_get_uniqueid", "failed");
  for (int other = 1; other < pes; ++other) {
    if (write(pipes[other][1], &id, sizeof id) != sizeof id) fail("write", "a PE is gone");
  }
  int status = run(&id);
  for (int ended; wait(&ended) > 0;) status |= WIFEXITED(ended) ? WEXITSTATUS(ended) : 1;
  return status;
}
