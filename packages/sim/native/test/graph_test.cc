// Graphs: captured and built, launched and updated; their memory, conditions and user objects.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

using check::Primary;

namespace {

constexpr const char* kCountDown = R"(
.version 8.5
.target sm_90
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry countDown(.param .u64 handle, .param .u64 left) {
  .reg .b64 %h, %p; .reg .b32 %n, %c; .reg .pred %more;
  ld.param.u64 %h, [handle];
  ld.param.u64 %p, [left];
  ld.global.u32 %n, [%p];
  sub.u32 %n, %n, 1;
  st.global.u32 [%p], %n;
  setp.ne.u32 %more, %n, 0;
  selp.u32 %c, 1, 0, %more;
  { .param .b64 a; .param .b32 b;
    st.param.b64 [a], %h; st.param.b32 [b], %c;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}
.visible .entry add(.param .u64 at, .param .u32 value) {
  .reg .b64 %p; .reg .b32 %n;
  ld.param.u64 %p, [at];
  ld.param.u32 %n, [value];
  red.global.add.u32 [%p], %n;
  ret;
}
)";

struct Code {
  CUmodule module = nullptr;
  Code() { OK(cuModuleLoadData(&module, kCountDown)); }
  CUfunction find(const char* name) const {
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, module, name));
    return function;
  }
};

CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr address = 0;
  OK(cuMemAlloc_v2(&address, bytes));
  OK(cuMemsetD8_v2(address, 0, bytes));
  OK(cuCtxSynchronize());
  return address;
}

unsigned read(CUdeviceptr address) {
  unsigned value = 0;
  OK(cuMemcpyDtoH_v2(&value, address, sizeof value));
  return value;
}

CUDA_KERNEL_NODE_PARAMS launchOf(CUfunction function, void** arguments) {
  CUDA_KERNEL_NODE_PARAMS wanted{};
  wanted.func = function;
  wanted.gridDimX = wanted.gridDimY = wanted.gridDimZ = wanted.blockDimX = wanted.blockDimY = wanted.blockDimZ = 1;
  wanted.kernelParams = arguments;
  return wanted;
}

CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) {
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiateWithFlags(&exec, graph, flags));
  return exec;
}

size_t countNodes(CUgraph graph) {
  size_t count = 0;
  OK(cuGraphGetNodes(graph, nullptr, &count));
  return count;
}

}  // namespace

TEST(a_capture_with_a_fork_and_a_join_runs_as_often_as_it_is_launched) {
  Primary primary;
  const Code code;
  const CUfunction add = code.find("add");
  CUstream one = check::stream(), two = check::stream();
  CUevent fork = nullptr, join = nullptr;
  OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr at = allocate(8);
  unsigned value = 3;
  CUdeviceptr second = at + 4;
  void* arguments[] = {&at, &value};
  void* others[] = {&second, &value};
  OK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, one, arguments, nullptr));
  OK(cuEventRecord(fork, one));
  OK(cuStreamWaitEvent(two, fork, 0));
  OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, two, others, nullptr));
  OK(cuEventRecord(join, two));
  OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, one, arguments, nullptr));
  OK(cuStreamWaitEvent(one, join, 0));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph building = nullptr;
  const CUgraphNode* dependencies = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  OK(cuStreamGetCaptureInfo_v3(one, &status, &id, &building, &dependencies, &edges, &count));
  EQUAL(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EQUAL(count, 2);
  EQUAL(cuEventQuery(join), CUDA_ERROR_CAPTURED_EVENT);
  CUgraph graph = nullptr;
  EQUAL(cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  OK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, one, arguments, nullptr));
  OK(cuEventRecord(fork, one));
  OK(cuStreamWaitEvent(two, fork, 0));
  OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, two, others, nullptr));
  OK(cuEventRecord(join, two));
  OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, one, arguments, nullptr));
  OK(cuStreamWaitEvent(one, join, 0));
  OK(cuStreamEndCapture(one, &graph));
  EQUAL(countNodes(graph), 3);
  OK(cuStreamIsCapturing(two, &status));
  EQUAL(status, CU_STREAM_CAPTURE_STATUS_NONE);
  EQUAL(read(at), 0);
  const CUgraphExec exec = instantiate(graph);
  OK(cuGraphDestroy(graph));
  for (int turn = 0; turn < 10; ++turn) OK(cuGraphLaunch(exec, turn % 2 == 0 ? one : two));
  OK(cuStreamSynchronize(one));
  OK(cuStreamSynchronize(two));
  EQUAL(read(at), 60);
  EQUAL(read(second), 30);
  OK(cuGraphExecDestroy(exec));
  EQUAL(cuGraphLaunch(exec, one), CUDA_ERROR_INVALID_VALUE);
}

TEST(what_a_capture_forbids_is_refused_and_ends_it) {
  Primary primary;
  CUstream stream = nullptr, other = check::stream();
  OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  CUgraph graph = nullptr;
  CUdeviceptr memory = allocate(64);
  const auto end = [&](CUresult expected) {
    EQUAL(cuStreamEndCapture(stream, &graph), expected);
    EQUAL(graph == nullptr, expected != CUDA_SUCCESS);
  };
  EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
  EQUAL(cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EQUAL(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
  EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EQUAL(cuMemsetD8Async(memory, 1, 64, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EQUAL(cuMemsetD8_v2(memory, 1, 64), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr more = 0;
  EQUAL(cuMemAlloc_v2(&more, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemAlloc_v2(&more, 64));
  CUevent event = nullptr;
  OK(cuEventCreate(&event, 0));
  OK(cuEventRecord(event, other));
  EQUAL(cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // Another stream's work was not joined.
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuEventRecord(event, stream));
  OK(cuStreamWaitEvent(other, event, 0));
  OK(cuMemsetD8Async(memory, 1, 64, other));
  EQUAL(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  end(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  // One thread begins the capture and another ends it.
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread([&] { EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD); }).join();
  end(CUDA_SUCCESS);
  OK(cuGraphDestroy(graph));
  OK(cuMemsetD8Async(memory, 1, 64, stream));
  OK(cuStreamSynchronize(stream));
}

TEST(nodes_added_by_hand_are_read_changed_and_run) {
  Primary primary;
  const Code code;
  CUstream stream = check::stream();
  CUdeviceptr at = allocate(256);
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUgraphNode fill = nullptr, kernel = nullptr, copy = nullptr, host = nullptr, empty = nullptr;
  CUDA_MEMSET_NODE_PARAMS filled{at, 0, 7, 4, 8, 1};
  OK(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &filled, nullptr));
  unsigned value = 5;
  void* arguments[] = {&at, &value};
  auto launched = launchOf(code.find("add"), arguments);
  OK(cuGraphAddKernelNode_v2(&kernel, graph, &fill, 1, &launched));
  static unsigned seen[8];
  CUDA_MEMCPY3D copied{};
  copied.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copied.srcDevice = at;
  copied.dstMemoryType = CU_MEMORYTYPE_HOST;
  copied.dstHost = seen;
  copied.WidthInBytes = sizeof seen;
  copied.Height = copied.Depth = 1;
  OK(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &copied, nullptr));
  static std::atomic<int> called{0};
  called = 0;
  CUDA_HOST_NODE_PARAMS call{[](void* sum) { *static_cast<std::atomic<int>*>(sum) += static_cast<int>(seen[0]); },
                             &called};
  OK(cuGraphAddHostNode(&host, graph, &copy, 1, &call));
  OK(cuGraphAddEmptyNode(&empty, graph, &host, 1));
  size_t count = 0;
  OK(cuGraphGetEdges(graph, nullptr, nullptr, &count));
  EQUAL(count, 4);
  CUgraphNode found[3] = {};
  count = 3;
  OK(cuGraphNodeGetDependencies(kernel, found, &count));
  EQUAL(count, 1);
  CHECK(found[0] == fill && found[1] == nullptr);
  EQUAL(cuGraphAddDependencies(graph, &host, &fill, 1), CUDA_ERROR_INVALID_VALUE);  // a cycle
  CUDA_KERNEL_NODE_PARAMS shown{};
  OK(cuGraphKernelNodeGetParams_v2(kernel, &shown));
  EQUAL(*static_cast<unsigned*>(shown.kernelParams[1]), 5);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(cuGraphNodeGetType(copy, &type));
  EQUAL(type, CU_GRAPH_NODE_TYPE_MEMCPY);

  const CUgraphExec exec = instantiate(graph);
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(seen[0], 12);
  EQUAL(seen[7], 7);
  EQUAL(called.load(), 12);

  value = 9;
  OK(cuGraphExecKernelNodeSetParams_v2(exec, kernel, &launched));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(seen[0], 16);
  OK(cuGraphNodeSetEnabled(exec, kernel, 0));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(seen[0], 7);
  EQUAL(cuGraphNodeSetEnabled(exec, host, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphNodeSetEnabled(exec, kernel, 1));

  // The graph itself still has the first value. An update applies it to the executable.
  CUgraphExecUpdateResultInfo info{};
  OK(cuGraphExecUpdate_v2(exec, graph, &info));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(seen[0], 12);
  CUgraph clone = nullptr;
  OK(cuGraphClone(&clone, graph));
  CUgraphNode same = nullptr;
  OK(cuGraphNodeFindInClone(&same, kernel, clone));
  OK(cuGraphDestroyNode(same));
  EQUAL(countNodes(clone), 4);
  EQUAL(cuGraphExecUpdate_v2(exec, clone, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  OK(cuGraphDestroy(clone));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  EQUAL(cuGraphNodeGetType(copy, &type), CUDA_ERROR_INVALID_VALUE);
}

TEST(branches_that_wait_for_each_other_do_not_stand_still) {
  Primary primary;
  CUstream stream = check::stream();
  CUdeviceptr at = allocate(8);
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUstreamBatchMemOpParams wait{}, write{};
  wait.waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, at, {1}, CU_STREAM_WAIT_VALUE_EQ, 0};
  write.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, at, {1}, 0, 0};
  CUDA_BATCH_MEM_OP_NODE_PARAMS first{nullptr, 1, &wait, 0}, second{nullptr, 1, &write, 0};
  CUgraphNode nodes[2] = {};
  OK(cuGraphAddBatchMemOpNode(&nodes[0], graph, nullptr, 0, &first));
  OK(cuGraphAddBatchMemOpNode(&nodes[1], graph, nullptr, 0, &second));
  const CUgraphExec exec = instantiate(graph);
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(read(at), 1);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

TEST(a_while_node_runs_until_its_kernel_says_so) {
  Primary primary;
  const Code code;
  CUstream stream = check::stream();
  CUdeviceptr left = allocate(8), sum = left + 4;
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUgraphConditionalHandle handle = 0;
  OK(cuGraphConditionalHandleCreate(&handle, graph, nullptr, 1, 1));
  CUgraphNodeParams wanted{};
  wanted.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  wanted.conditional.handle = handle;
  wanted.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
  wanted.conditional.size = 1;
  CUgraphNode loop = nullptr;
  OK(cuGraphAddNode(&loop, graph, nullptr, 0, &wanted));
  const CUgraph body = wanted.conditional.phGraph_out[0];
  void* counted[] = {&handle, &left};
  unsigned two = 2;
  void* added[] = {&sum, &two};
  auto count = launchOf(code.find("countDown"), counted), add = launchOf(code.find("add"), added);
  CUgraphNode nodes[2] = {};
  OK(cuGraphAddKernelNode_v2(&nodes[0], body, nullptr, 0, &count));
  OK(cuGraphAddKernelNode_v2(&nodes[1], body, nodes, 1, &add));
  EQUAL(cuGraphDestroy(body), CUDA_ERROR_INVALID_VALUE);
  const CUgraphExec exec = instantiate(graph);
  OK(cuGraphDestroy(graph));
  for (unsigned turn = 1; turn <= 2; ++turn) {
    OK(cuMemsetD32Async(left, 5, 1, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    EQUAL(read(left), 0);
    EQUAL(read(sum), 10 * turn);
  }
  OK(cuGraphExecDestroy(exec));
}

TEST(memory_of_a_graph_is_there_from_its_node_on_and_freed_by_one) {
  Primary primary;
  const Code code;
  CUstream stream = check::stream();
  static unsigned seen = 0;
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr memory = 0;
  OK(cuMemAllocAsync(&memory, 4096, stream));
  OK(cuMemsetD32Async(memory, 77, 1024, stream));
  OK(cuMemcpyDtoHAsync_v2(&seen, memory + 4092, sizeof seen, stream));
  OK(cuMemFreeAsync(memory, stream));
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  CUgraph clone = nullptr;
  EQUAL(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
  CUgraphExec exec = instantiate(graph);
  for (int turn = 0; turn < 3; ++turn) {
    seen = 0;
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    EQUAL(seen, 77);
  }
  cuuint64_t used = 1;
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  EQUAL(used, 4096);
  OK(cuDeviceGraphMemTrim(0));
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  EQUAL(used, 0);
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &used));
  EQUAL(used, 0);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));

  // Memory that the graph does not free belongs to the program.
  OK(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  wanted.bytesize = 1 << 20;
  CUgraphNode node = nullptr;
  OK(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &wanted));
  exec = instantiate(graph);
  OK(cuGraphLaunch(exec, stream));
  EQUAL(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  EQUAL(used, 1 << 20);
  OK(cuMemFreeAsync(wanted.dptr, stream));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemFree_v2(wanted.dptr));
  EQUAL(cuMemFree_v2(wanted.dptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

// Graph memory in use and reserved, now and at most: with several graphs, after trims, frees and resets.
TEST(memory_of_graphs_is_counted) {
  Primary primary;
  const CUstream stream = check::stream();
  const auto read = [](CUgraphMem_attribute attribute) {
    cuuint64_t value = 0;
    OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
  };
  const auto counted = [&](cuuint64_t used, cuuint64_t usedHigh, cuuint64_t reserved, cuuint64_t reservedHigh) {
    EQUAL(read(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), used);
    EQUAL(read(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), usedHigh);
    EQUAL(read(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), reserved);
    EQUAL(read(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), reservedHigh);
  };
  const auto setBack = [](CUgraphMem_attribute attribute) {
    cuuint64_t none = 0;
    return cuDeviceSetGraphMemAttribute(0, attribute, &none);
  };
  OK(cuDeviceGraphMemTrim(0));
  OK(setBack(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH));
  OK(setBack(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
  counted(0, 0, 0, 0);
  CUgraph graphs[2];
  CUgraphExec execs[2];
  CUdeviceptr memory[2];
  for (unsigned index = 0; index < 2; ++index) {
    OK(cuGraphCreate(&graphs[index], 0));
    CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
    wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    wanted.bytesize = (index + 1) << 20;
    CUgraphNode node = nullptr;
    OK(cuGraphAddMemAllocNode(&node, graphs[index], nullptr, 0, &wanted));
    memory[index] = wanted.dptr;
    execs[index] = instantiate(graphs[index]);
  }
  constexpr cuuint64_t mebibyte = 1 << 20;
  counted(0, 0, 0, 0);
  OK(cuGraphLaunch(execs[0], stream));
  counted(mebibyte, mebibyte, mebibyte, mebibyte);
  OK(cuGraphLaunch(execs[1], stream));
  counted(3 * mebibyte, 3 * mebibyte, 3 * mebibyte, 3 * mebibyte);
  // A trim keeps memory that the program still owns.
  OK(cuDeviceGraphMemTrim(0));
  counted(3 * mebibyte, 3 * mebibyte, 3 * mebibyte, 3 * mebibyte);
  OK(cuStreamSynchronize(stream));
  OK(cuMemFree_v2(memory[0]));
  OK(cuDeviceGraphMemTrim(0));
  counted(2 * mebibyte, 3 * mebibyte, 2 * mebibyte, 3 * mebibyte);
  OK(setBack(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH));
  counted(2 * mebibyte, 2 * mebibyte, 2 * mebibyte, 3 * mebibyte);
  OK(setBack(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
  counted(2 * mebibyte, 2 * mebibyte, 2 * mebibyte, 2 * mebibyte);
  EQUAL(setBack(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), CUDA_ERROR_INVALID_VALUE);
  // A free in the middle of the allocation fails, and so does a second free.
  EQUAL(cuMemFree_v2(memory[0]), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(memory[1]));
  for (unsigned index = 0; index < 2; ++index) {
    OK(cuGraphExecDestroy(execs[index]));
    OK(cuGraphDestroy(graphs[index]));
  }
  OK(cuDeviceGraphMemTrim(0));
  counted(0, 2 * mebibyte, 0, 2 * mebibyte);
  OK(cuStreamDestroy_v2(stream));
}

TEST(user_objects_live_as_long_as_the_last_graph_that_holds_them) {
  Primary primary;
  static int destroyed = 0;
  destroyed = 0;
  CUuserObject object = nullptr;
  OK(cuUserObjectCreate(
      &object, &destroyed, [](void* count) { ++*static_cast<int*>(count); }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphNode node = nullptr;
  OK(cuGraphAddEmptyNode(&node, graph, nullptr, 0));
  const CUgraphExec exec = instantiate(graph);
  OK(cuGraphDestroy(graph));
  EQUAL(destroyed, 0);
  OK(cuGraphExecDestroy(exec));
  EQUAL(destroyed, 1);
}

TEST(events_are_recorded_and_waited_for_by_nodes) {
  Primary primary;
  CUstream stream = check::stream(), other = check::stream();
  CUevent event = nullptr;
  OK(cuEventCreate(&event, 0));
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(shoalSimStreamDelay(other, 20000000));
  OK(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  const CUgraphExec exec = instantiate(graph);
  OK(cuGraphLaunch(exec, other));
  EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  OK(cuEventSynchronize(event));
  OK(cuStreamSynchronize(other));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}
