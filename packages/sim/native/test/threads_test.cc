// No thread can be started: every call that needs a thread returns a status of its API. Nothing aborts or hangs. This
// program's pthread_create replaces the C library's, for the libraries as well.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <functional>

#include "check.h"
#include "nccl_checks.h"
#include "shoal/nvshmem.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool isReplaced = false;  // a sanitizer has its own pthread_create
#else
constexpr bool isReplaced = true;
#endif

namespace {

// The number of threads that may still be started; negative: unlimited.
std::atomic<int> left{-1};
std::atomic<int> refused{0};

const bool isConfigured = [] {
  setenv("SHOAL_SIM_DEVICES", "3", 1);
  setenv("SHOAL_SIM_TIMEOUT_SECONDS", "20", 1);
  return true;
}();

}  // namespace

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
extern "C"
    __attribute__((visibility("default"))) int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                              void* (*start)(void*), void* argument) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (left.load() == 0) {
    ++refused;
    return EAGAIN;
  }
  if (left.load() > 0) --left;
  return real(thread, attributes, start, argument);
}
#endif

namespace {

// Runs `body` when no thread can be started, then with one thread, and so on, until enough threads can be started.
// `body` throws for a wrong status.
void withFewerThreads(const std::function<void()>& body, int most = 40) {
  if (!isReplaced) throw check::Skip("sanitizers have a pthread_create of their own");
  for (int threads = 0;; ++threads) {
    CHECK(threads < most);
    refused = 0;
    left = threads;
    alarm(300);
    try {
      body();
    } catch (...) {
      left = -1;
      alarm(0);
      throw;
    }
    left = -1;
    alarm(0);
    if (refused == 0) {
      CHECK(threads > 0);
      return;
    }
  }
}

// True for success and for the status that reports the lack of a thread.
bool isTold(CUresult status) { return status == CUDA_SUCCESS || status == CUDA_ERROR_OPERATING_SYSTEM; }
bool isTold(ncclResult_t status) {
  return status == ncclSuccess || status == ncclSystemError || status == ncclUnhandledCudaError ||
         status == ncclRemoteError || status == ncclInProgress;
}

}  // namespace

TEST(streams_without_threads_return_a_status) {
  check::Primary primary;
  const CUdeviceptr memory = check::memory(64);
  withFewerThreads([&] {
    const CUstream stream = check::stream(), other = check::stream();
    const CUevent event = check::event();
    CHECK(isTold(cuMemsetD8Async(memory, 1, 64, stream)));
    CHECK(isTold(cuMemcpyAsync(memory, memory + 32, 16, stream)));
    CHECK(isTold(cuLaunchHostFunc(stream, [](void*) {}, nullptr)));
    CHECK(isTold(cuStreamWriteValue32_v2(stream, memory, 1, 0)));
    CHECK(isTold(cuEventRecord(event, stream)));
    CHECK(isTold(cuStreamWaitEvent(other, event, 0)));
    CUdeviceptr pooled = 0;
    const CUresult made = cuMemAllocAsync(&pooled, 64, other);
    CHECK(isTold(made));
    if (made == CUDA_SUCCESS) CHECK(isTold(cuMemFreeAsync(pooled, other)));
    OK(cuStreamSynchronize(stream));
    OK(cuStreamSynchronize(other));
    OK(cuCtxSynchronize());
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(stream));
    OK(cuStreamDestroy_v2(other));
  });
  OK(cuMemFree_v2(memory));
}

TEST(graphs_without_threads_return_a_status_and_begin_nothing) {
  check::Primary primary;
  const CUdeviceptr memory = check::memory(4096);
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.elementSize = 1;
  fill.width = 16;
  fill.height = 1;
  for (unsigned node = 0; node < 6; ++node) {
    CUgraphNode made = nullptr;
    fill.dst = memory + node * 16;
    fill.value = 7;
    OK(cuGraphAddMemsetNode(&made, graph, nullptr, 0, &fill, primary.context));
  }
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiate_v2(&exec, graph, nullptr, nullptr, 0));
  withFewerThreads([&] {
    const CUstream stream = check::stream();
    OK(cuMemsetD8_v2(memory, 0, 96));
    const CUresult status = cuGraphLaunch(exec, stream);
    CHECK(isTold(status));
    OK(cuStreamSynchronize(stream));
    unsigned char found[96];
    OK(cuMemcpyDtoH_v2(found, memory, 96));
    for (unsigned char each : found) EQUAL(each, status == CUDA_SUCCESS ? 7 : 0);
    OK(cuStreamDestroy_v2(stream));
  });
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuMemFree_v2(memory));
}

TEST(memory_is_not_shared_without_a_thread_that_answers) {
  check::Primary primary;
  const CUdeviceptr memory = check::memory(64);
  withFewerThreads([&] {
    CUipcMemHandle handle;
    CHECK(isTold(cuIpcGetMemHandle(&handle, memory)));
  });
  OK(cuMemFree_v2(memory));
}

TEST(communicators_without_threads_return_a_status) {
  check::Primary primary;
  withFewerThreads([&] {
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    ncclComm_t comms[3] = {};
    NCCL(ncclGroupStart());
    for (int rank = 0; rank < 3; ++rank) {
      check::Primary own(rank);
      NCCL(ncclCommInitRank(&comms[rank], 3, id, rank));
    }
    const ncclResult_t status = ncclGroupEnd();
    CHECK(isTold(status));
    for (ncclComm_t comm : comms) {
      CHECK((comm != nullptr) == (status == ncclSuccess));
      if (comm != nullptr) NCCL(ncclCommAbort(comm));
    }
  });
  withFewerThreads([&] {
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    const ncclResult_t status = ncclCommInitRankConfig(&comm, 1, id, 0, &config);
    CHECK(isTold(status));
    ncclResult_t state = ncclInProgress;
    while (comm != nullptr && state == ncclInProgress) NCCL(ncclCommGetAsyncError(comm, &state));
    if (comm != nullptr) NCCL(ncclCommAbort(comm));
  });
}

TEST(a_group_that_is_queued_in_part_breaks_off) {
  ncclComm_t comms[3] = {};
  OK(cuInit(0));
  withFewerThreads([&] {
    const int before = left.exchange(-1);
    NCCL(ncclCommInitAll(comms, 3, nullptr));
    left = before;
    CUcontext contexts[3];
    CUstream streams[3];
    CUdeviceptr buffers[3];
    for (int rank = 0; rank < 3; ++rank) {
      OK(cuDevicePrimaryCtxRetain(&contexts[rank], rank));
      OK(cuCtxSetCurrent(contexts[rank]));
      streams[rank] = check::stream();
      buffers[rank] = check::memory(64);
    }
    NCCL(ncclGroupStart());
    for (int rank = 0; rank < 3; ++rank) {
      void* at = reinterpret_cast<void*>(buffers[rank]);
      NCCL(ncclAllReduce(at, at, 16, ncclFloat32, ncclSum, comms[rank], streams[rank]));
    }
    CHECK(isTold(ncclGroupEnd()));
    // No rank waits for a rank whose part was not queued.
    for (int rank = 0; rank < 3; ++rank) {
      OK(cuCtxSetCurrent(contexts[rank]));
      OK(cuStreamSynchronize(streams[rank]));
      OK(cuStreamDestroy_v2(streams[rank]));
      OK(cuMemFree_v2(buffers[rank]));
      NCCL(ncclCommAbort(comms[rank]));
      OK(cuDevicePrimaryCtxRelease_v2(rank));
    }
    OK(cuCtxSetCurrent(nullptr));
  });
}

// NVSHMEM can only start once per process.
TEST(nvshmem_without_threads_returns_a_status_and_starts_later) {
  check::Primary primary;
  // The messages of expected failures do not belong in the test's output.
  CHECK(freopen("/dev/null", "w", stderr) != nullptr);
  withFewerThreads([&] {
    nvshmemx_uniqueid_t id = {};
    nvshmemx_init_attr_t attributes = {};
    int status = nvshmemx_get_uniqueid(&id);
    CHECK(status == NVSHMEMX_SUCCESS || status == NVSHMEMX_ERROR_INTERNAL);
    if (status != NVSHMEMX_SUCCESS) return;
    OK(nvshmemx_set_attr_uniqueid_args(0, 1, &id, &attributes));
    status = nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
    CHECK(status == NVSHMEMX_SUCCESS || status == NVSHMEMX_ERROR_INTERNAL);
    if (status != NVSHMEMX_SUCCESS) return;
    // After the start, blocking calls, which have no status, need no further thread.
    auto* cell = static_cast<int*>(nvshmem_malloc(sizeof(int)));
    CHECK(cell != nullptr);
    nvshmem_int_p(cell, 5, 0);
    int seen = 0;
    nvshmem_getmem(&seen, cell, sizeof seen, 0);
    EQUAL(seen, 5);
    nvshmem_barrier_all();
    const CUstream stream = check::stream();
    const int synced = nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, stream);
    CHECK(synced == NVSHMEMX_SUCCESS || synced == NVSHMEMX_ERROR_INTERNAL);
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy_v2(stream));
    nvshmem_free(cell);
    nvshmemx_hostlib_finalize();
  });
}
