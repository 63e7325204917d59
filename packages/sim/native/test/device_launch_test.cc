// Graphs launched by kernels: the rules of an H200, and calls that the software device refuses although hardware
// accepts them, or hangs.
#include "check.h"

using check::Primary;

namespace {

constexpr const char* kKernels = R"(
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 result) cudaGraphLaunch (.param .b64 graph, .param .b64 stream);
.func (.param .b32 result) deeper(.param .b64 graph, .param .b64 stream) {
  .reg .b64 %g, %h; .reg .b32 %r;
  ld.param.u64 %g, [graph];
  ld.param.u64 %h, [stream];
  { .param .b64 a; .param .b64 b; .param .b32 c;
    st.param.b64 [a], %g; st.param.b64 [b], %h;
    call.uni (c), cudaGraphLaunch, (a, b);
    ld.param.b32 %r, [c]; }
  st.param.b32 [result], %r;
  ret;
}
.visible .entry launch(.param .u64 graph, .param .u64 how, .param .u64 status) {
  .reg .b64 %g, %h, %s; .reg .b32 %r;
  ld.param.u64 %g, [graph];
  ld.param.u64 %h, [how];
  ld.param.u64 %s, [status];
  { .param .b64 a; .param .b64 b; .param .b32 c;
    st.param.b64 [a], %g; st.param.b64 [b], %h;
    call.uni (c), deeper, (a, b);
    ld.param.b32 %r, [c]; }
  st.global.u32 [%s], %r;
  ret;
}
.visible .entry note(.param .u64 list, .param .u32 value) {
  .reg .b64 %l, %p; .reg .b32 %n, %v;
  ld.param.u64 %l, [list];
  ld.param.u32 %v, [value];
  ld.global.u32 %n, [%l];
  add.u32 %n, %n, 1;
  st.global.u32 [%l], %n;
  mul.wide.u32 %p, %n, 4;
  add.u64 %p, %p, %l;
  st.global.u32 [%p], %v;
  ret;
}
)";

constexpr uint64_t kTail = uint64_t{1} << 56, kFire = uint64_t{2} << 56;
constexpr unsigned long long kForKernels = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;

struct Tools {
  Primary primary;
  CUmodule module = nullptr;
  CUstream stream = check::stream();
  CUdeviceptr list = check::memory(1024), status = check::memory(4);
  Tools() {
    OK(cuModuleLoadData(&module, kKernels));
    OK(cuMemsetD8_v2(list, 0, 1024));
    OK(cuMemsetD8_v2(status, 0xff, 4));
  }
  CUfunction find(const char* name) const {
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, module, name));
    return function;
  }
  CUgraphNode add(CUgraph graph, const char* name, void** arguments, CUgraphNode before = nullptr) const {
    CUDA_KERNEL_NODE_PARAMS wanted{};
    wanted.func = find(name);
    wanted.gridDimX = wanted.gridDimY = wanted.gridDimZ = wanted.blockDimX = wanted.blockDimY = wanted.blockDimZ = 1;
    wanted.kernelParams = arguments;
    CUgraphNode node = nullptr;
    OK(cuGraphAddKernelNode_v2(&node, graph, &before, before == nullptr ? 0 : 1, &wanted));
    return node;
  }
  CUgraphNode addNote(CUgraph graph, unsigned value, CUgraphNode before = nullptr) {
    void* arguments[] = {&list, &value};
    return add(graph, "note", arguments, before);
  }
  CUgraphNode addLaunch(CUgraph graph, uint64_t exec, uint64_t how, CUgraphNode before = nullptr) {
    void* arguments[] = {&exec, &how, &status};
    return add(graph, "launch", arguments, before);
  }
  uint64_t forKernels(CUgraph graph) {
    CUgraphExec exec = nullptr;
    OK(cuGraphInstantiateWithFlags(&exec, graph, kForKernels));
    OK(cuGraphUpload(exec, stream));
    return reinterpret_cast<uint64_t>(exec);
  }
  void run(CUgraph graph) {
    CUgraphExec exec = nullptr;
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuGraphExecDestroy(exec));
  }
  std::vector<unsigned> noted() {
    std::vector<unsigned> words(256);
    OK(cuMemcpyDtoH_v2(words.data(), list, 1024));
    OK(cuMemsetD8_v2(list, 0, 1024));
    return {words.begin() + 1, words.begin() + 1 + words[0]};
  }
};

CUgraph create() {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  return graph;
}

// Adds a conditional node whose condition is true, and returns its body.
CUgraph addIf(CUgraph graph) {
  CUgraphConditionalHandle handle = 0;
  OK(cuGraphConditionalHandleCreate(&handle, graph, nullptr, 1, 1));
  CUgraphNodeParams wanted{};
  wanted.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  wanted.conditional.handle = handle;
  wanted.conditional.type = CU_GRAPH_COND_TYPE_IF;
  wanted.conditional.size = 1;
  CUgraphNode node = nullptr;
  OK(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &wanted));
  return wanted.conditional.phGraph_out[0];
}

}  // namespace

TEST(what_is_fired_runs_before_the_tails_and_tails_of_tails_before_those_that_wait) {
  Tools tools;
  const auto noting = [&](unsigned value) {
    CUgraph graph = create();
    tools.addNote(graph, value);
    return tools.forKernels(graph);
  };
  // This graph notes 10, launches a graph that notes 11 as fire-and-forget, and one that notes 12 as a tail.
  CUgraph tail = create();
  auto last = tools.addNote(tail, 10);
  last = tools.addLaunch(tail, noting(12), kTail, last);
  tools.addLaunch(tail, noting(11), kFire, last);
  CUgraph graph = create();
  last = tools.addNote(graph, 1);
  last = tools.addLaunch(graph, tools.forKernels(tail), kTail, last);
  last = tools.addLaunch(graph, noting(20), kTail, last);
  last = tools.addLaunch(graph, noting(2), kFire, last);
  tools.addNote(graph, 3, last);
  for (int turn = 0; turn < 2; ++turn) {
    tools.run(graph);
    EQUAL((tools.noted() == std::vector<unsigned>{1, 2, 3, 10, 11, 12, 20}), true);
  }
}

TEST(a_kernel_that_launches_graphs_runs_in_graphs_only) {
  Tools tools;
  uint64_t none = 0, how = kFire;
  void* arguments[] = {&none, &how, &tools.status};
  EQUAL(cuLaunchKernel(tools.find("launch"), 1, 1, 1, 1, 1, 1, 0, tools.stream, arguments, nullptr),
        CUDA_ERROR_NOT_SUPPORTED);
  // A captured launch becomes a node.
  CUgraph captured = nullptr;
  OK(cuStreamBeginCapture_v2(tools.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuLaunchKernel(tools.find("launch"), 1, 1, 1, 1, 1, 1, 0, tools.stream, arguments, nullptr));
  OK(cuStreamEndCapture(tools.stream, &captured));
  tools.run(captured);
  unsigned status = 0;
  OK(cuMemcpyDtoH_v2(&status, tools.status, 4));
  EQUAL(status, 1);
  OK(cuGraphDestroy(captured));
}

TEST(flags_and_nodes_that_do_not_go_with_it) {
  Tools tools;
  CUgraph graph = create();
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS wanted{};
  wanted.flags = kForKernels;
  EQUAL(cuGraphInstantiateWithParams(&exec, graph, &wanted), CUDA_ERROR_INVALID_VALUE);
  EQUAL(wanted.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
  tools.addNote(graph, 1);
  EQUAL(cuGraphInstantiateWithFlags(&exec, graph, kForKernels | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
        CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphInstantiateWithFlags(&exec, graph, kForKernels | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
  cuuint64_t flags = 0;
  OK(cuGraphExecGetFlags(exec, &flags));
  EQUAL(flags, kForKernels);
  OK(cuGraphExecDestroy(exec));
  // The same holds in a nested graph.
  CUgraph child = create(), around = create();
  CUgraphNode empty = nullptr, node = nullptr;
  OK(cuGraphAddEmptyNode(&empty, child, nullptr, 0));
  OK(cuGraphAddChildGraphNode(&node, around, nullptr, 0, child));
  EQUAL(cuGraphInstantiateWithParams(&exec, around, &wanted), CUDA_ERROR_INVALID_VALUE);
  EQUAL(wanted.result_out, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
  EQUAL(wanted.hErrNode_out != nullptr, true);
  for (CUgraph each : {graph, child, around}) OK(cuGraphDestroy(each));
}

TEST(the_flag_that_uploads_does_so_and_only_with_parameters) {
  Tools tools;
  CUgraph graph = create(), launching = create();
  tools.addNote(graph, 7);
  CUgraphExec exec = nullptr;
  for (const unsigned long long flags : {2ull, 2 | kForKernels})
    EQUAL(cuGraphInstantiateWithFlags(&exec, graph, flags), CUDA_ERROR_INVALID_VALUE);
  CUDA_GRAPH_INSTANTIATE_PARAMS wanted{};
  wanted.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | kForKernels;
  wanted.hUploadStream = tools.stream;
  OK(cuGraphInstantiateWithParams(&exec, graph, &wanted));
  tools.addLaunch(launching, reinterpret_cast<uint64_t>(exec), kFire);
  tools.run(launching);
  EQUAL((tools.noted() == std::vector<unsigned>{7}), true);
  wanted.hUploadStream = reinterpret_cast<CUstream>(12345);
  EQUAL(cuGraphInstantiateWithParams(&exec, graph, &wanted), CUDA_ERROR_INVALID_HANDLE);
}

TEST(ordinary_memory_is_not_copied_by_it) {
  Tools tools;
  unsigned word = 0;
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcDevice = tools.list, copy.dstHost = &word;
  copy.WidthInBytes = 4, copy.Height = copy.Depth = 1;
  CUgraph graph = create();
  CUgraphNode node = nullptr;
  OK(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, tools.primary.context));
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS wanted{};
  wanted.flags = kForKernels;
  EQUAL(cuGraphInstantiateWithParams(&exec, graph, &wanted), CUDA_ERROR_INVALID_VALUE);
  EQUAL(wanted.result_out, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
  EQUAL(wanted.hErrNode_out == node, true);
  OK(cuGraphDestroy(graph));
}

TEST(graphs_launch_each_other_a_thousand_deep) {
  check::softwareOnly("hardware was not asked");
  Tools tools;
  CUgraph graph = create();
  tools.addNote(graph, 5);
  uint64_t last = tools.forKernels(graph);
  for (int level = 0; level < 1500; ++level) {
    CUgraph around = create();
    tools.addLaunch(around, last, kFire);
    last = tools.forKernels(around);
    OK(cuGraphDestroy(around));
  }
  CUgraph launching = create();
  tools.addLaunch(launching, last, kFire);
  tools.run(launching);
  EQUAL(tools.noted().size(), 0);
}

TEST(an_update_brings_no_such_kernel_into_a_body) {
  check::softwareOnly("hardware hangs there");
  Tools tools;
  CUgraph graph = create();
  CUgraphNode inside = tools.addNote(addIf(graph), 1);
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  uint64_t none = 0, how = kFire;
  void* arguments[] = {&none, &how, &tools.status};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = tools.find("launch");
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = arguments;
  OK(cuGraphKernelNodeSetParams_v2(inside, &kernel));
  CUgraphExecUpdateResultInfo info{};
  EQUAL(cuGraphExecUpdate_v2(exec, graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

TEST(in_a_body_of_a_condition_such_a_kernel_is_refused) {
  check::softwareOnly("hardware hangs there");
  Tools tools;
  CUgraph graph = create();
  tools.addLaunch(addIf(graph), 0, kFire);
  CUgraphExec exec = nullptr;
  EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(graph));
}

TEST(what_is_no_graph_for_kernels_faults) {
  check::softwareOnly("hardware runs a graph that was destroyed");
  for (int which = 0; which < 3; ++which) {
    Tools tools;
    CUgraph graph = create(), launching = create();
    tools.addNote(graph, 1);
    CUgraphExec exec = nullptr;
    OK(cuGraphInstantiateWithFlags(&exec, graph, which == 0 ? 0 : kForKernels));
    OK(cuGraphUpload(exec, tools.stream));
    if (which == 1) OK(cuGraphExecDestroy(exec));
    tools.addLaunch(launching, which == 2 ? 12345 : reinterpret_cast<uint64_t>(exec), kFire);
    CUgraphExec outer = nullptr;
    OK(cuGraphInstantiateWithFlags(&outer, launching, 0));
    OK(cuGraphLaunch(outer, tools.stream));
    EQUAL(cuStreamSynchronize(tools.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuDevicePrimaryCtxReset_v2(0));
  }
}
