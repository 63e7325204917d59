// Child graphs, cloned and moved, and graphs with memory, which allow only one executable graph. All as on an H200.
#include "check.h"

using check::Primary;

namespace {

CUgraph create() {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  return graph;
}

CUgraphNode addEmpty(CUgraph graph, const CUgraphNode* before = nullptr) {
  CUgraphNode node = nullptr;
  OK(cuGraphAddEmptyNode(&node, graph, before, before == nullptr ? 0 : 1));
  return node;
}

CUDA_MEM_ALLOC_NODE_PARAMS wantMemory(size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  wanted.bytesize = bytes;
  return wanted;
}

CUDA_MEMCPY3D copyOfWord(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from, copy.dstDevice = to;
  copy.WidthInBytes = 4, copy.Height = copy.Depth = 1;
  return copy;
}

// A graph that allocates memory, copies a word in and out, and frees the memory.
CUgraph withMemory(CUdeviceptr in = 0, CUdeviceptr out = 0, size_t bytes = 4096) {
  CUgraph graph = create();
  auto wanted = wantMemory(bytes);
  CUgraphNode node = nullptr, freed = nullptr;
  OK(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &wanted));
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  if (out != 0) {
    for (const auto& copy : {copyOfWord(wanted.dptr, in), copyOfWord(out, wanted.dptr)}) {
      OK(cuGraphAddMemcpyNode(&node, graph, &node, 1, &copy, context));
    }
  }
  OK(cuGraphAddMemFreeNode(&freed, graph, &node, 1, wanted.dptr));
  return graph;
}

CUdeviceptr word(unsigned value) {
  const CUdeviceptr memory = check::memory(4);
  OK(cuMemsetD32_v2(memory, value, 1));
  return memory;
}

CUresult addChild(CUgraph parent, CUgraph child, CUgraphChildGraphNodeOwnership ownership, CUgraphNode* node) {
  CUgraphNodeParams wanted{};
  wanted.type = CU_GRAPH_NODE_TYPE_GRAPH;
  wanted.graph.graph = child;
  wanted.graph.ownership = ownership;
  return cuGraphAddNode_v2(node, parent, nullptr, nullptr, 0, &wanted);
}

constexpr auto kMove = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
constexpr auto kClone = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;

CUgraph childOf(CUgraphNode node) {
  CUgraph graph = nullptr;
  OK(cuGraphChildGraphNodeGetGraph(node, &graph));
  return graph;
}

size_t countNodes(CUgraph graph) {
  size_t count = 0;
  OK(cuGraphGetNodes(graph, nullptr, &count));
  return count;
}

unsigned read(CUdeviceptr address) {
  unsigned value = 0;
  OK(cuMemcpyDtoH_v2(&value, address, sizeof value));
  return value;
}

}  // namespace

TEST(a_graph_with_memory_only_grows) {
  Primary primary;
  CUgraph graph = withMemory();
  CUgraphNode first = addEmpty(graph), second = addEmpty(graph, &first);
  EQUAL(cuGraphRemoveDependencies_v2(graph, &first, &second, nullptr, 1), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuGraphRemoveDependencies_v2(graph, &second, &first, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphRemoveDependencies_v2(graph, nullptr, nullptr, nullptr, 0));
  EQUAL(cuGraphDestroyNode(second), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(countNodes(graph), 4);
  OK(cuGraphDestroy(graph));
  graph = create();
  first = addEmpty(graph), second = addEmpty(graph, &first);
  OK(cuGraphRemoveDependencies_v2(graph, &first, &second, nullptr, 1));
  OK(cuGraphDestroyNode(second));
  OK(cuGraphDestroy(graph));
}

TEST(a_graph_with_memory_has_one_executable_graph_at_a_time) {
  Primary primary;
  CUstream stream = check::stream();
  const CUdeviceptr out = check::memory(4);
  CUgraph graph = withMemory(word(5), out), other = withMemory(word(6), out, 1 << 20);
  CUgraphExec exec = nullptr, second = nullptr;
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CUDA_GRAPH_INSTANTIATE_PARAMS wanted{};
  EQUAL(cuGraphInstantiateWithParams(&second, graph, &wanted), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(wanted.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));

  // After the update, the executable belongs to the other graph.
  CUgraphExecUpdateResultInfo info{};
  OK(cuGraphExecUpdate_v2(exec, other, &info));
  EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(read(out), 6);
  EQUAL(cuGraphInstantiateWithFlags(&second, other, 0), CUDA_ERROR_NOT_SUPPORTED);
  OK(cuGraphInstantiateWithFlags(&second, graph, 0));
  EQUAL(cuGraphExecUpdate_v2(exec, graph, &info), CUDA_ERROR_NOT_SUPPORTED);
  OK(cuGraphExecUpdate_v2(exec, other, &info));
  OK(cuGraphLaunch(second, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(read(out), 5);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphExecDestroy(second));
  OK(cuGraphDestroy(graph));
  OK(cuGraphDestroy(other));

  // An update cannot move a fill to other memory.
  CUgraphNode filling = nullptr;
  for (CUgraph* made : {&graph, &other}) {
    *made = create();
    auto memory = wantMemory(64);
    CUgraphNode node = nullptr;
    OK(cuGraphAddMemAllocNode(&node, *made, nullptr, 0, &memory));
    CUcontext context = nullptr;
    OK(cuCtxGetCurrent(&context));
    const CUDA_MEMSET_NODE_PARAMS fill{memory.dptr + 60, 0, 1, 4, 1, 1};
    OK(cuGraphAddMemsetNode(&node, *made, &node, 1, &fill, context));
    if (made == &graph) filling = node;
    OK(cuGraphAddMemFreeNode(&node, *made, &node, 1, memory.dptr));
  }
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cuGraphExecUpdate_v2(exec, graph, &info));
  EQUAL(cuGraphExecUpdate_v2(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_ERROR);
  EQUAL(info.errorNode == filling && info.errorFromNode == nullptr, true);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuGraphDestroy(other));

  // A graph without memory allows any number of executables.
  graph = create();
  addEmpty(graph);
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cuGraphInstantiateWithFlags(&second, graph, 0));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphExecDestroy(second));
  OK(cuGraphDestroy(graph));
}

TEST(a_graph_that_is_moved_is_part_of_the_other_one) {
  Primary primary;
  CUstream stream = check::stream();
  const CUdeviceptr out = check::memory(4);
  CUgraph child = withMemory(word(7), out), parent = create(), third = create();
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr, second = nullptr;
  EQUAL(addChild(parent, child, kClone, &node), CUDA_ERROR_NOT_SUPPORTED);
  OK(cuGraphInstantiateWithFlags(&exec, child, 0));
  EQUAL(addChild(parent, child, kMove, &node), CUDA_ERROR_NOT_SUPPORTED);
  OK(cuGraphExecDestroy(exec));
  OK(addChild(parent, child, kMove, &node));
  EQUAL(childOf(node) == child, true);

  EQUAL(cuGraphInstantiateWithFlags(&exec, child, 0), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
  for (const auto ownership : {kClone, kMove}) {
    CUgraphNode refused = nullptr;
    EQUAL(addChild(third, child, ownership, &refused), CUDA_ERROR_NOT_SUPPORTED);
  }
  auto more = wantMemory(64);
  CUgraphNode refused = nullptr;
  EQUAL(cuGraphAddMemAllocNode(&refused, child, nullptr, 0, &more), CUDA_ERROR_NOT_SUPPORTED);
  CUgraph holder = create();
  auto own = wantMemory(64);
  OK(cuGraphAddMemAllocNode(&refused, holder, nullptr, 0, &own));
  EQUAL(cuGraphAddMemFreeNode(&refused, child, nullptr, 0, own.dptr), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuGraphAddMemFreeNode(&refused, child, nullptr, 0, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(holder));
  CUgraphNode added = addEmpty(child);
  EQUAL(cuGraphDestroyNode(added), CUDA_ERROR_NOT_SUPPORTED);
  CUgraphNode beside = addEmpty(parent);
  EQUAL(cuGraphDestroyNode(beside), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuGraphDestroyNode(node), CUDA_ERROR_NOT_SUPPORTED);

  OK(cuGraphInstantiateWithFlags(&exec, parent, 0));
  EQUAL(cuGraphInstantiateWithFlags(&second, parent, 0), CUDA_ERROR_NOT_SUPPORTED);
  CUgraphExecUpdateResultInfo info{};
  info.result = CU_GRAPH_EXEC_UPDATE_ERROR;
  EQUAL(cuGraphExecUpdate_v2(exec, child, &info), CUDA_ERROR_INVALID_VALUE);
  EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(read(out), 7);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(parent));
  EQUAL(cuGraphAddEmptyNode(&added, child, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(third));
}

TEST(a_graph_holds_no_graph_that_holds_it) {
  Primary primary;
  CUgraph outer = create(), middle = create(), inner = create();
  CUgraphNode node = nullptr;
  OK(addChild(outer, middle, kMove, &node));
  OK(addChild(middle, inner, kMove, &node));
  EQUAL(addChild(outer, outer, kMove, &node), CUDA_ERROR_INVALID_VALUE);
  EQUAL(addChild(inner, outer, kMove, &node), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(outer));
}

TEST(conditions_are_not_moved_and_bodies_not_copied) {
  Primary primary;
  CUgraph graph = create(), parent = create();
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  CUgraphNodeParams wanted{};
  wanted.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  OK(cuGraphConditionalHandleCreate(&wanted.conditional.handle, graph, context, 0, 1));
  wanted.conditional.type = CU_GRAPH_COND_TYPE_IF;
  wanted.conditional.size = 1;
  wanted.conditional.ctx = context;
  CUgraphNode node = nullptr, other = nullptr;
  OK(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &wanted));
  CUgraph body = wanted.conditional.phGraph_out[0], copy = nullptr;
  addEmpty(body);
  CUgraphExec exec = nullptr, second = nullptr;
  EQUAL(cuGraphClone(&copy, body), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuGraphInstantiateWithFlags(&exec, body, 0), CUDA_ERROR_NOT_SUPPORTED);
  for (const auto ownership : {kClone, kMove}) {
    EQUAL(addChild(parent, body, ownership, &other), CUDA_ERROR_NOT_SUPPORTED);
    EQUAL(addChild(parent, graph, ownership, &other), CUDA_ERROR_NOT_SUPPORTED);
  }
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  EQUAL(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
  OK(cuGraphExecDestroy(exec));

  // A nested graph has a handle that no node uses.
  CUgraph inner = create();
  OK(addChild(parent, inner, kMove, &other));
  OK(cuGraphConditionalHandleCreate(&wanted.conditional.handle, inner, context, 0, 1));
  EQUAL(cuGraphInstantiateWithFlags(&exec, parent, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(parent));
  OK(cuGraphDestroy(graph));
}

TEST(a_child_graph_is_replaced_by_a_copy_of_another) {
  Primary primary;
  CUgraph parent = create(), child = create(), like = create(), unlike = create();
  CUgraphNode node = nullptr;
  addEmpty(child), addEmpty(like), addEmpty(unlike), addEmpty(unlike);
  OK(addChild(parent, child, kMove, &node));
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiateWithFlags(&exec, parent, 0));
  CUgraphNodeParams wanted{};
  wanted.type = CU_GRAPH_NODE_TYPE_GRAPH;
  wanted.graph.graph = like;
  OK(cuGraphExecNodeSetParams(exec, node, &wanted));
  wanted.graph.graph = unlike;
  EQUAL(cuGraphExecNodeSetParams(exec, node, &wanted), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EQUAL(cuGraphExecChildGraphNodeSetParams(exec, node, unlike), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  OK(cuGraphExecChildGraphNodeSetParams(exec, node, like));
  OK(cuGraphNodeSetParams(node, &wanted));
  EQUAL(countNodes(childOf(node)), 2);
  EQUAL(childOf(node) == unlike, false);
  // The moved graph was destroyed with its parent.
  EQUAL(cuGraphAddEmptyNode(&node, child, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphExecDestroy(exec));
  for (CUgraph graph : {parent, like, unlike}) OK(cuGraphDestroy(graph));
}

TEST(a_launch_of_a_graph_is_not_captured) {
  Primary primary;
  CUgraph graph = create(), captured = nullptr;
  addEmpty(graph);
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CUstream stream = check::stream();
  for (const auto call : {&cuGraphLaunch, &cuGraphUpload}) {
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EQUAL(call(exec, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EQUAL(cuStreamEndCapture(stream, &captured), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}
