/*
 * Graphs, launches with attributes, and batched copies, in C. Answers requests on standard input, so that its loops can
 * alternate with other programs:
 *
 *   CASE COUNT   runs the case COUNT times and answers with the nanoseconds per run
 *
 *   launch       launches a graph of NODES kernels ten times in a row; the wait for the GPU does not count
 *   build        builds a graph of NODES kernels in a chain, and destroys it
 *   instantiate  instantiates the graph, and destroys the executable graph
 *   cluster      launches a kernel in clusters of 2
 *   cooperative  launches a cooperative kernel
 *   struct       launches a kernel with a struct of 64 bytes
 *   copies       queues COPIES copies of 4 KiB in one call
 *
 * Starts with a line `ready CASE …`. Arguments: a PTX file with the kernels empty0 and empty64, NODES, COPIES.
 */
#include "common.h"

#define BURST 100
#define GRAPH_BURST 10
#define COPY_BYTES 4096

static CUfunction empty0, empty64;

static CUgraph build(long nodes) {
  CUgraph graph;
  CUgraphNode last = NULL;
  CUDA(cuGraphCreate(&graph, 0));
  for (long i = 0; i < nodes; ++i) {
    CUgraphNodeParams wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.type = CU_GRAPH_NODE_TYPE_KERNEL;
    wanted.kernel.func = empty0;
    wanted.kernel.gridDimX = wanted.kernel.gridDimY = wanted.kernel.gridDimZ = 1;
    wanted.kernel.blockDimX = 32;
    wanted.kernel.blockDimY = wanted.kernel.blockDimZ = 1;
    CUgraphNode node;
    CUDA(cuGraphAddNode(&node, graph, &last, NULL, last == NULL ? 0 : 1, &wanted));
    last = node;
  }
  return graph;
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: graphs PTX-FILE NODES COPIES\n"), 2;
  const long nodes = atol(argv[2]), copies = atol(argv[3]);
  enter_device(0);
  CUstream stream;
  CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUmodule module;
  CUDA(cuModuleLoadData(&module, read_file(argv[1])));
  CUDA(cuModuleGetFunction(&empty0, module, "empty0"));
  CUDA(cuModuleGetFunction(&empty64, module, "empty64"));
  CUgraph graph = build(nodes);
  CUgraphExec exec;
  CUDA(cuGraphInstantiate(&exec, graph, 0));
  CUDA(cuGraphUpload(exec, stream));
  CUDA(cuStreamSynchronize(stream));
  CUdeviceptr from, to;
  CUDA(cuMemAlloc(&from, COPY_BYTES * copies));
  CUDA(cuMemAlloc(&to, COPY_BYTES * copies));
  CUdeviceptr* targets = malloc(copies * sizeof *targets);
  CUdeviceptr* sources = malloc(copies * sizeof *sources);
  size_t* sizes = malloc(copies * sizeof *sizes);
  for (long i = 0; i < copies; ++i)
    targets[i] = to + i * COPY_BYTES, sources[i] = from + i * COPY_BYTES, sizes[i] = COPY_BYTES;
  CUmemcpyAttributes attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t first = 0;
  CUlaunchAttribute attribute;
  memset(&attribute, 0, sizeof attribute);
  CUlaunchConfig config;
  memset(&config, 0, sizeof config);
  config.gridDimX = 8, config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32, config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  char block[64] = {0};
  void* parameters[] = {block};
  printf("ready launch build instantiate cluster cooperative struct copies\n");
  fflush(stdout);

  char name[32];
  long count;
  while (scanf("%31s %ld", name, &count) == 2) {
    double total = 0;
    long done = count;
#define MEASURE(calls, statements)       \
  done = count * (calls);                \
  for (long b = 0; b < count; ++b) {     \
    const double start = now();          \
    for (long i = 0; i < (calls); ++i) { \
      statements;                        \
    }                                    \
    total += now() - start;              \
    CUDA(cuStreamSynchronize(stream));   \
  }
    if (strcmp(name, "launch") == 0) {
      MEASURE(GRAPH_BURST, CUDA(cuGraphLaunch(exec, stream)))
    } else if (strcmp(name, "build") == 0) {
      MEASURE(1, CUDA(cuGraphDestroy(build(nodes))))
    } else if (strcmp(name, "instantiate") == 0) {
      CUgraphExec made;
      MEASURE(1, CUDA(cuGraphInstantiate(&made, graph, 0)); CUDA(cuGraphExecDestroy(made)))
    } else if (strcmp(name, "cluster") == 0) {
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim.x = 2, attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
      MEASURE(BURST, CUDA(cuLaunchKernelEx(&config, empty0, NULL, NULL)))
    } else if (strcmp(name, "cooperative") == 0) {
      attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      attribute.value.cooperative = 1;
      MEASURE(BURST, CUDA(cuLaunchKernelEx(&config, empty0, NULL, NULL)))
    } else if (strcmp(name, "struct") == 0) {
      MEASURE(BURST, CUDA(cuLaunchKernel(empty64, 8, 1, 1, 32, 1, 1, 0, stream, parameters, NULL)))
    } else if (strcmp(name, "copies") == 0) {
      MEASURE(1, CUDA(cuMemcpyBatchAsync(targets, sources, sizes, copies, &attributes, &first, 1, stream)))
    } else {
      return fprintf(stderr, "graphs.c: unknown case %s\n", name), 2;
    }
    answer(total / (double)done);
  }
  return 0;
}
