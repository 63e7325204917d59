/*
 * One PE of NVSHMEM, in C. Answers requests on standard input, so that its loops can alternate with other programs:
 *
 *   CASE BYTES ITERATIONS WARMUPS
 *
 * Answers with the microseconds per operation. Operations with a peer use the next PE; only PE 0 gets these requests.
 * All PEs get the requests for barriers.
 *
 *   put, get                   on a stream, back to back, one wait at the end
 *   put-latency, get-latency   on a stream, with a wait after each
 *   host-put, host-get         the blocking calls
 *   p, g                       one 64-bit word
 *   atomic-...                 on one 64-bit word; those without a result are waited for once, by nvshmem_quiet
 *   barrier, sync              the blocking calls
 *   barrier-on-stream          back to back, one wait at the end
 *
 * Arguments: the file of libnvshmem_host, this PE, the number of PEs, the largest message.
 */
#include "nvshmemStart.h"
#include "ranks.h"

_Static_assert(sizeof(struct unique_id) == ID_BYTES, "unique id");

#define FUNCTIONS(X)                                                                                    \
  X(get_unique_id, "nvshmemx_get_uniqueid", int, (struct unique_id*))                                   \
  X(set_unique_id, "nvshmemx_set_attr_uniqueid_args", int,                                              \
    (int, int, const struct unique_id*, struct init_attributes*))                                       \
  X(init, "nvshmemx_hostlib_init_attr", int, (unsigned, struct init_attributes*))                       \
  X(version, "nvshmemx_vendor_get_version_info", void, (int*, int*, int*))                              \
  X(allocate, "nvshmem_malloc", void*, (size_t))                                                        \
  X(put_on_stream, "nvshmemx_putmem_on_stream", void, (void*, const void*, size_t, int, CUstream))      \
  X(get_on_stream, "nvshmemx_getmem_on_stream", void, (void*, const void*, size_t, int, CUstream))      \
  X(barrier_on_stream, "nvshmemx_barrier_all_on_stream", void, (CUstream))                              \
  X(put, "nvshmem_putmem", void, (void*, const void*, size_t, int))                                     \
  X(get, "nvshmem_getmem", void, (void*, const void*, size_t, int))                                     \
  X(p, "nvshmem_uint64_p", void, (uint64_t*, uint64_t, int))                                            \
  X(g, "nvshmem_uint64_g", uint64_t, (const uint64_t*, int))                                            \
  X(add, "nvshmem_uint64_atomic_add", void, (uint64_t*, uint64_t, int))                                 \
  X(fetch_add, "nvshmem_uint64_atomic_fetch_add", uint64_t, (uint64_t*, uint64_t, int))                 \
  X(set, "nvshmem_uint64_atomic_set", void, (uint64_t*, uint64_t, int))                                 \
  X(fetch, "nvshmem_uint64_atomic_fetch", uint64_t, (const uint64_t*, int))                             \
  X(compare_swap, "nvshmem_uint64_atomic_compare_swap", uint64_t, (uint64_t*, uint64_t, uint64_t, int)) \
  X(barrier, "nvshmem_barrier_all", void, (void))                                                       \
  X(sync, "nvshmem_sync_all", void, (void))                                                             \
  X(quiet, "nvshmem_quiet", void, (void))

static struct {
  FUNCTIONS(MEMBER)
} nvshmem;

static void load_nvshmem(const char* path) {
  void* library = open_library(path);
#define LOAD(name, symbol_name, result, parameters) nvshmem.name = symbol(library, symbol_name);
  FUNCTIONS(LOAD)
}

static int peer;
static CUstream stream;
static void *here, *there;

static void loop(const char* name, size_t bytes, long count) {
  uint64_t* word = there;
#define IF(text) else if (strcmp(name, text) == 0)
#define REPEAT for (long i = 0; i < count; ++i)
  if (strcmp(name, "put") == 0) {
    REPEAT nvshmem.put_on_stream(there, here, bytes, peer, stream);
    CUDA(cuStreamSynchronize(stream));
  }
  IF("get") {
    REPEAT nvshmem.get_on_stream(here, there, bytes, peer, stream);
    CUDA(cuStreamSynchronize(stream));
  }
  IF("put-latency") {
    REPEAT {
      nvshmem.put_on_stream(there, here, bytes, peer, stream);
      CUDA(cuStreamSynchronize(stream));
    }
  }
  IF("get-latency") {
    REPEAT {
      nvshmem.get_on_stream(here, there, bytes, peer, stream);
      CUDA(cuStreamSynchronize(stream));
    }
  }
  IF("host-put") { REPEAT nvshmem.put(there, here, bytes, peer); }
  IF("host-get") { REPEAT nvshmem.get(here, there, bytes, peer); }
  IF("p") {
    REPEAT nvshmem.p(word, i, peer);
    nvshmem.quiet();
  }
  IF("g") { REPEAT nvshmem.g(word, peer); }
  IF("atomics-work") {
    const uint64_t before = nvshmem.g(word, peer);
    nvshmem.fetch_add(word, 1, peer);
    if (nvshmem.g(word, peer) != before + 1) fail("nvshmem_uint64_atomic_fetch_add", "it changes nothing");
  }
  IF("atomic-add") {
    REPEAT nvshmem.add(word, 1, peer);
    nvshmem.quiet();
  }
  IF("atomic-fetch-add") { REPEAT nvshmem.fetch_add(word, 1, peer); }
  IF("atomic-set") {
    REPEAT nvshmem.set(word, i, peer);
    nvshmem.quiet();
  }
  IF("atomic-fetch") { REPEAT nvshmem.fetch(word, peer); }
  IF("atomic-compare-swap") { REPEAT nvshmem.compare_swap(word, i, i + 1, peer); }
  IF("barrier") { REPEAT nvshmem.barrier(); }
  IF("sync") { REPEAT nvshmem.sync(); }
  IF("barrier-on-stream") {
    REPEAT nvshmem.barrier_on_stream(stream);
    CUDA(cuStreamSynchronize(stream));
  }
  else fail(name, "no such case"); }

int main(int argc, char** argv) {
  if (argc != 5) return fprintf(stderr, "usage: nvshmem LIBNVSHMEM PE PES BYTES\n"), 2;
  load_nvshmem(argv[1]);
  const int pe = atoi(argv[2]), pes = atoi(argv[3]);
  const size_t most = strtoull(argv[4], NULL, 10);
  peer = (pe + 1) % pes;
  enter_device(pe);
  CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  struct unique_id id = {VERSION(struct unique_id), {0}};
  if (pe == 0 && nvshmem.get_unique_id(&id) != 0) fail("nvshmemx_get_uniqueid", "failed");
  exchange_id((unsigned char*)&id, pe == 0);
  struct init_attributes attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.version = VERSION(struct init_attributes);
  attributes.arguments.version = VERSION(attributes.arguments);
  attributes.arguments.by_id.version = VERSION(attributes.arguments.by_id);
  if (nvshmem.set_unique_id(pe, pes, &id, &attributes) != 0) fail("nvshmemx_set_attr_uniqueid_args", "failed");
  if (nvshmem.init(INIT_WITH_UNIQUE_ID, &attributes) != 0) fail("nvshmemx_hostlib_init_attr", "failed");
  here = nvshmem.allocate(most);
  there = nvshmem.allocate(most);
  if (here == NULL || there == NULL) fail("nvshmem_malloc", "no symmetric memory");
  CUDA(cuMemsetD8((CUdeviceptr)here, 0, most));
  CUDA(cuMemsetD8((CUdeviceptr)there, 0, most));
  CUDA(cuCtxSynchronize());
  nvshmem.barrier();
  int major = 0, minor = 0, patch = 0;
  nvshmem.version(&major, &minor, &patch);
  printf("ready %d.%d.%d\n", major, minor, patch);
  fflush(stdout);

  char name[32];
  size_t bytes;
  long iterations, warmups;
  while (scanf(" %31s %zu %ld %ld", name, &bytes, &iterations, &warmups) == 4) {
    if (bytes > most) fail("BYTES", "more than the buffers hold");
    loop(name, bytes, warmups);
    const double start = now();
    loop(name, bytes, iterations);
    answer((now() - start) / 1e3 / (double)iterations);
  }
  return 0;
}
