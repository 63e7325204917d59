// Functions that only the software device has: injected errors, and work of other libraries on its streams and in its
// graphs.
#include <atomic>

#include "check.h"

using check::Primary;

namespace {

struct Counts {
  std::atomic<int> started{0}, run{0}, discarded{0}, released{0};
  CUresult result = CUDA_SUCCESS;
};

void* start(void* data) {
  ++static_cast<Counts*>(data)->started;
  return data;
}
void* startNothing(void*) { return nullptr; }
CUresult run(void* data) {
  ++static_cast<Counts*>(data)->run;
  return static_cast<Counts*>(data)->result;
}
void discard(void* data) { ++static_cast<Counts*>(data)->discarded; }
void release(void* data) { ++static_cast<Counts*>(data)->released; }

}  // namespace

TEST(an_error_is_that_of_one_device_until_it_is_taken_back) {
  int count = 0;
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  EQUAL(shoalSimInjectError(-1, CUDA_ERROR_ILLEGAL_ADDRESS), CUDA_ERROR_INVALID_DEVICE);
  EQUAL(shoalSimInjectError(count, CUDA_ERROR_ILLEGAL_ADDRESS), CUDA_ERROR_INVALID_DEVICE);
  EQUAL(shoalSimInjectError(0, -1), CUDA_ERROR_INVALID_VALUE);
  Primary first(0), second(1);
  OK(shoalSimInjectError(0, CUDA_ERROR_ILLEGAL_ADDRESS));
  OK(cuCtxSynchronize());
  OK(cuCtxSetCurrent(first.context));
  EQUAL(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  OK(shoalSimInjectError(0, CUDA_SUCCESS));
  OK(cuCtxSynchronize());
  OK(cuCtxSetCurrent(second.context));
}

TEST(work_is_queued_with_the_memory_it_reads_and_writes) {
  Primary primary;
  CUstream stream = check::stream();
  const CUdeviceptr memory = check::memory(64);
  Counts counts;
  const ShoalSimRange known[] = {{memory, 64, 0}, {memory, 64, 1}}, foreign[] = {{memory, 64, 0}, {memory, 65, 1}};
  OK(shoalSimEnqueue(stream, run, discard, &counts, nullptr, 0));
  OK(shoalSimEnqueue(stream, run, nullptr, &counts, known, 2));
  OK(cuStreamSynchronize(stream));
  EQUAL(counts.run, 2);
  EQUAL(shoalSimEnqueue(stream, nullptr, discard, &counts, known, 2), CUDA_ERROR_INVALID_VALUE);
  EQUAL(shoalSimEnqueue(stream, run, discard, &counts, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  CHECK(shoalSimEnqueue(stream, run, discard, &counts, foreign, 2) != CUDA_SUCCESS);
  OK(shoalSimEnqueue(stream, run, discard, &counts, foreign, 1));
  OK(cuStreamSynchronize(stream));
  EQUAL(counts.run, 3);
  EQUAL(counts.discarded, 0);
  // Failed work makes the context fail, and later work is discarded.
  counts.result = CUDA_ERROR_LAUNCH_FAILED;
  OK(shoalSimStreamDelay(stream, 20000000));
  OK(shoalSimEnqueue(stream, run, discard, &counts, known, 2));
  OK(shoalSimEnqueue(stream, run, discard, &counts, known, 2));
  EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  EQUAL(counts.run, 4);
  EQUAL(counts.discarded, 1);
  OK(shoalSimInjectError(0, CUDA_SUCCESS));
}

TEST(work_that_is_captured_starts_anew_with_each_launch) {
  Primary primary;
  CUstream stream = check::stream();
  const CUdeviceptr memory = check::memory(64);
  const ShoalSimRange known[] = {{memory, 64, 1}};
  Counts counts;
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EQUAL(shoalSimCapture(stream, nullptr, run, discard, release, &counts, known, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(shoalSimCapture(stream, start, nullptr, discard, release, &counts, known, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(shoalSimCapture(stream, start, run, discard, nullptr, &counts, known, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(shoalSimCapture(stream, start, run, discard, release, &counts, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  OK(shoalSimCapture(stream, start, run, discard, release, &counts, known, 1));
  OK(shoalSimCapture(stream, start, run, nullptr, release, &counts, nullptr, 0));
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  OK(cuGraphGetNodes(graph, nullptr, &nodes));
  EQUAL(nodes, 2);
  EQUAL(counts.started, 0);
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int round = 1; round <= 2; ++round) {
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    EQUAL(counts.started, 2 * round);
    EQUAL(counts.run, 2 * round);
  }
  OK(cuGraphDestroy(graph));
  EQUAL(counts.released, 0);
  OK(cuGraphExecDestroy(exec));
  EQUAL(counts.released, 2);
  EQUAL(counts.discarded, 0);
  OK(cuMemFree_v2(memory));
}

TEST(work_that_was_not_captured_or_does_not_start_is_the_callers) {
  Primary primary;
  CUstream stream = check::stream();
  Counts counts;
  CHECK(shoalSimCapture(stream, start, run, discard, release, &counts, nullptr, 0) != CUDA_SUCCESS);
  EQUAL(counts.released, 0);
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(shoalSimCapture(stream, startNothing, run, discard, release, &counts, nullptr, 0));
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  EQUAL(cuGraphLaunch(exec, stream), CUDA_ERROR_LAUNCH_FAILED);
  EQUAL(counts.run, 0);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  EQUAL(counts.released, 1);
}
