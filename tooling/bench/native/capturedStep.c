/*
 * A training step on several devices, in C: kernels on each device and an all-reduce over all. The step is captured in
 * one graph, or queued call by call. Answers requests on standard input, so that its loops can alternate with other
 * programs:
 *
 *   launch COUNT   launches the graph ten times, COUNT times over; answers with the nanoseconds per launch
 *   queue COUNT    queues the calls one by one instead
 *
 * The waits for the GPUs do not count. Starts with a line `ready`. Arguments: the file of libnccl, a PTX file with the
 * kernel empty0, the number of devices, the number of kernels per device, and the number of floats in the all-reduce.
 */
#include "ncclFunctions.h"

#define BURST 10

static int devices, kernels;
static size_t count;
static CUcontext contexts[MOST_DEVICES];
static CUstream streams[MOST_DEVICES];
static CUfunction empty0[MOST_DEVICES];
static CUdeviceptr buffers[MOST_DEVICES];
static CUevent ends[MOST_DEVICES], begun;
static ncclComm_t comms[MOST_DEVICES];

static void queue(void) {
  for (int i = 0; i < devices; ++i) {
    CUDA(cuCtxSetCurrent(contexts[i]));
    for (int k = 0; k < kernels; ++k) CUDA(cuLaunchKernel(empty0[i], 1, 1, 1, 32, 1, 1, 0, streams[i], NULL, NULL));
  }
  CUDA(cuCtxSetCurrent(contexts[0]));
  NCCL(nccl.group_start());
  for (int i = 0; i < devices; ++i) {
    void* buffer = (void*)buffers[i];
    NCCL(nccl.all_reduce(buffer, buffer, count, ncclFloat32, ncclSum, comms[i], streams[i]));
  }
  NCCL(nccl.group_end());
}

/*
 * Captures all devices in one graph. The other devices' streams join the capture through an event of the first stream,
 * and the first stream waits for them at the end.
 */
static CUgraphExec capture(void) {
  CUgraph graph;
  CUgraphExec exec;
  CUDA(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUDA(cuEventRecord(begun, streams[0]));
  for (int i = 1; i < devices; ++i) CUDA(cuStreamWaitEvent(streams[i], begun, 0));
  queue();
  for (int i = 1; i < devices; ++i) {
    CUDA(cuEventRecord(ends[i], streams[i]));
    CUDA(cuStreamWaitEvent(streams[0], ends[i], 0));
  }
  CUDA(cuStreamEndCapture(streams[0], &graph));
  CUDA(cuGraphInstantiate(&exec, graph, 0));
  CUDA(cuGraphUpload(exec, streams[0]));
  CUDA(cuGraphDestroy(graph));
  return exec;
}

static void synchronize(void) {
  for (int i = 0; i < devices; ++i) CUDA(cuStreamSynchronize(streams[i]));
}

int main(int argc, char** argv) {
  if (argc != 6) return fprintf(stderr, "usage: capturedStep LIBNCCL PTX-FILE DEVICES KERNELS FLOATS\n"), 2;
  load_nccl(argv[1]);
  devices = atoi(argv[3]);
  kernels = atoi(argv[4]);
  count = strtoull(argv[5], NULL, 10);
  if (devices < 1 || devices > MOST_DEVICES) fail("DEVICES", "out of range");
  const char* ptx = read_file(argv[2]);
  for (int i = 0; i < devices; ++i) {
    contexts[i] = enter_device(i);
    CUmodule module;
    CUDA(cuModuleLoadData(&module, ptx));
    CUDA(cuModuleGetFunction(&empty0[i], module, "empty0"));
    CUDA(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    CUDA(cuMemAlloc(&buffers[i], count * 4));
    CUDA(cuMemsetD8(buffers[i], 0, count * 4));
    CUDA(cuEventCreate(&ends[i], CU_EVENT_DISABLE_TIMING));
  }
  CUDA(cuCtxSetCurrent(contexts[0]));
  CUDA(cuEventCreate(&begun, CU_EVENT_DISABLE_TIMING));
  ncclUniqueId id;
  NCCL(nccl.get_unique_id(&id));
  NCCL(nccl.group_start());
  for (int i = 0; i < devices; ++i) {
    CUDA(cuCtxSetCurrent(contexts[i]));
    NCCL(nccl.init_rank(&comms[i], devices, id, i));
  }
  NCCL(nccl.group_end());
  /* Connects the ranks, because connecting cannot be captured. */
  queue();
  synchronize();
  const CUgraphExec exec = capture();
  synchronize();
  printf("ready\n");
  fflush(stdout);

  char name[32];
  long bursts;
  while (scanf("%31s %ld", name, &bursts) == 2) {
    const int launches = strcmp(name, "launch") == 0;
    double total = 0;
    for (long b = 0; b < bursts; ++b) {
      const double start = now();
      for (int i = 0; i < BURST; ++i) {
        if (launches) CUDA(cuGraphLaunch(exec, streams[0]));
        else queue();
      }
      total += now() - start;
      synchronize();
    }
    answer(total / (double)(bursts * BURST));
  }
  for (int i = 0; i < devices; ++i) NCCL(nccl.destroy(comms[i]));
  return 0;
}
