// Nodes of each kind: adding them, reading their parameters, and changing them in a graph or in an executable graph.
#include "conditional.h"
#include "copywork.h"
#include "core/context.h"
#include "core/launchattributes.h"
#include "exec.h"
#include "fillwork.h"
#include "hostwork.h"
#include "memopwork.h"
#include "memory.h"
#include "module/kernelwork.h"
#include "nodework.h"

using namespace shoal;

namespace {

// Adds a node with the work that `make` creates, after the dependencies.
template <class Make>
CUresult add(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
             size_t count, Make&& make) {
  return withGraph(handle, [&](Graph& graph) -> CUresult {
    std::vector<Edge> edges;
    WorkPointer work;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = readDependencies(graph, dependencies, data, count, edges)) return status;
    if (const CUresult status = make(work)) return status;
    return graph.addChecked(out, std::move(work), std::move(edges));
  });
}

// Calls `body` with the node's work if the work is of this kind.
template <class Kind, class Body>
CUresult read(CUgraphNode handle, const void* out, Body&& body) {
  return withNode(handle, [&](GraphNode& node) -> CUresult {
    const auto* work = dynamic_cast<const Kind*>(node.work.get());
    if (work == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return body(*work);
  });
}

// Replaces the node's work by other work of the same kind.
template <class Make>
CUresult change(CUgraphNode handle, CUgraphNodeType type, Make&& make) {
  return withNode(handle, [&](GraphNode& node) -> CUresult {
    WorkPointer work;
    Operation unused;
    if (node.work->type() != type) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = make(node, work)) return status;
    if (const CUresult status = work->prepare(nullptr, unused)) return status;
    node.graph->replace(node, std::move(work));
    return CUDA_SUCCESS;
  });
}

template <class Body>
CUresult withExec(CUgraphExec handle, CUgraphNode nodeHandle, Body&& body) {
  return withNode(nodeHandle, [&](GraphNode& original) -> CUresult {
    const auto exec = executables().find(handle);
    GraphNode* node = exec ? exec->find(original) : nullptr;
    return node == nullptr ? CUDA_ERROR_INVALID_VALUE : body(*exec, *node);
  });
}

template <class Make>
CUresult changeExec(CUgraphExec handle, CUgraphNode nodeHandle, CUgraphNodeType type, Make&& make) {
  return withExec(handle, nodeHandle, [&](GraphExec& exec, GraphNode& node) -> CUresult {
    WorkPointer work;
    if (node.work->type() != type) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = make(node, work)) return status;
    return exec.setWork(node, std::move(work));
  });
}

CUcontext ownerOf(const GraphNode& node) { return node.work->context()->handle(); }

CUresult setChild(CUgraphExec execHandle, CUgraphNode nodeHandle, CUgraph childHandle) {
  return withExec(execHandle, nodeHandle, [&](GraphExec& exec, GraphNode& node) -> CUresult {
    const auto from = graphs().find(childHandle);
    return from ? exec.setChild(node, *from) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult addAny(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                size_t count, CUgraphNodeParams* wanted) {
  if (wanted == nullptr) return initialised([] { return CUDA_ERROR_INVALID_VALUE; });
  if (wanted->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    return withGraph(handle, [&](Graph& graph) -> CUresult {
      std::vector<Edge> edges;
      if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (const CUresult status = readDependencies(graph, dependencies, data, count, edges)) return status;
      return addConditional(graph, out, std::move(edges), wanted->conditional);
    });
  }
  return add(out, handle, dependencies, data, count, [&](WorkPointer& work) -> CUresult {
    switch (wanted->type) {
      case CU_GRAPH_NODE_TYPE_EMPTY: work = std::make_shared<EmptyWork>(); return CUDA_SUCCESS;
      case CU_GRAPH_NODE_TYPE_GRAPH:
        return makeChild(handle, wanted->graph.graph, wanted->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
                         work);
      case CU_GRAPH_NODE_TYPE_MEM_FREE: return makeFree(handle, wanted->free.dptr, work);
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        auto& alloc = wanted->alloc;
        CUDA_MEM_ALLOC_NODE_PARAMS described{alloc.poolProps, alloc.accessDescs, alloc.accessDescCount, alloc.bytesize,
                                             0};
        const CUresult status = makeAllocation(handle, &described, work);
        if (status == CUDA_SUCCESS) alloc.dptr = described.dptr;
        return status;
      }
      default: return makeAny(nullptr, *wanted, work);
    }
  });
}

}  // namespace

#define SHOAL_DEPENDENCIES \
  CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies
#define SHOAL_ADD(make) \
  add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, [&](WorkPointer& work) -> CUresult { return make; })

CUresult cuGraphAddNode(SHOAL_DEPENDENCIES, CUgraphNodeParams* nodeParams) {
  return addAny(phGraphNode, hGraph, dependencies, nullptr, numDependencies, nodeParams);
}
CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* dependencyData, size_t numDependencies,
                           CUgraphNodeParams* nodeParams) {
  return addAny(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
}
CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  if (nodeParams == nullptr) return initialised([] { return CUDA_ERROR_INVALID_VALUE; });
  return change(hNode, nodeParams->type, [&](GraphNode& node, WorkPointer& work) -> CUresult {
    if (nodeParams->type != CU_GRAPH_NODE_TYPE_GRAPH) return makeAny(&node, *nodeParams, work);
    // Refuse to move a child graph. An H200 accepts the move, but the node is then without a graph.
    const auto& [child, ownership] = nodeParams->graph;
    return ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE ? CUDA_ERROR_INVALID_VALUE
                                                            : makeChild(node.graph->handle(), child, false, work);
  });
}
CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  if (nodeParams == nullptr) return initialised([] { return CUDA_ERROR_INVALID_VALUE; });
  if (nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH) return setChild(hGraphExec, hNode, nodeParams->graph.graph);
  return changeExec(hGraphExec, hNode, nodeParams->type,
                    [&](GraphNode& node, WorkPointer& work) { return makeAny(&node, *nodeParams, work); });
}

// Kernels.
CUresult cuGraphAddKernelNode_v2(SHOAL_DEPENDENCIES, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return SHOAL_ADD(nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*nodeParams, work));
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return read<KernelWork>(hNode, nodeParams, [&](auto& kernel) {
    *nodeParams = kernel.parameters();
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return change(hNode, CU_GRAPH_NODE_TYPE_KERNEL,
                [&](GraphNode& node, WorkPointer& work) { return makeKernelOf(node, nodeParams, work); });
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return changeExec(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_KERNEL,
                    [&](GraphNode& node, WorkPointer& work) { return makeKernelOf(node, nodeParams, work); });
}
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue* value_out) {
  return read<KernelWork>(hNode, value_out, [&](auto& kernel) -> CUresult {
    if (!isNodeAttribute(attr)) return CUDA_ERROR_INVALID_VALUE;
    const auto found = kernel.attributes.find(attr);
    *value_out = found == kernel.attributes.end() ? usualAttribute(attr) : found->second;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue* value) {
  return change(hNode, CU_GRAPH_NODE_TYPE_KERNEL, [&](GraphNode& node, WorkPointer& work) -> CUresult {
    // Hardware accepts this attribute, but does not return it.
    const bool isForgotten = attr == CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
    if (value == nullptr || !(isNodeAttribute(attr) || isForgotten) || !isValidAttribute(attr, *value))
      return CUDA_ERROR_INVALID_VALUE;
    const auto& kernel = static_cast<const KernelWork&>(*node.work);
    auto attributes = kernel.attributes;
    if (!isForgotten) attributes[attr] = *value;
    work = kernel.with(std::move(attributes));
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
  return withNode(src, [&](GraphNode& from) -> CUresult {
    const auto* kernel = dynamic_cast<const KernelWork*>(from.work.get());
    if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change(dst, CU_GRAPH_NODE_TYPE_KERNEL, [&](GraphNode& node, WorkPointer& work) {
      work = static_cast<const KernelWork&>(*node.work).with(kernel->attributes);
      return CUDA_SUCCESS;
    });
  });
}

// Copies and fills.
CUresult cuGraphAddMemcpyNode(SHOAL_DEPENDENCIES, const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  return SHOAL_ADD(copyParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*copyParams, ctx, work));
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  return read<CopyWork>(hNode, nodeParams, [&](auto& copy) {
    *nodeParams = copy.parameters;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  return change(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, [&](GraphNode& node, WorkPointer& work) {
    return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*nodeParams, ownerOf(node), work);
  });
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D* copyParams,
                                        CUcontext ctx) {
  return changeExec(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMCPY, [&](GraphNode&, WorkPointer& work) {
    return copyParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*copyParams, ctx, work);
  });
}
CUresult cuGraphAddMemsetNode(SHOAL_DEPENDENCIES, const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  return SHOAL_ADD(memsetParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*memsetParams, ctx, work));
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return read<FillWork>(hNode, nodeParams, [&](auto& fill) {
    *nodeParams = fill.parameters;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return change(hNode, CU_GRAPH_NODE_TYPE_MEMSET, [&](GraphNode& node, WorkPointer& work) {
    return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*nodeParams, ownerOf(node), work);
  });
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  return changeExec(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMSET, [&](GraphNode&, WorkPointer& work) {
    return memsetParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*memsetParams, ctx, work);
  });
}

// Host functions.
CUresult cuGraphAddHostNode(SHOAL_DEPENDENCIES, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return SHOAL_ADD(nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*nodeParams, work));
}
CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  return read<HostWork>(hNode, nodeParams, [&](auto& host) {
    *nodeParams = host.parameters;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return change(hNode, CU_GRAPH_NODE_TYPE_HOST, [&](GraphNode&, WorkPointer& work) {
    return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*nodeParams, work);
  });
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return changeExec(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_HOST, [&](GraphNode&, WorkPointer& work) {
    return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*nodeParams, work);
  });
}

// Child graphs and empty nodes.
CUresult cuGraphAddChildGraphNode(SHOAL_DEPENDENCIES, CUgraph childGraph) {
  return SHOAL_ADD(makeChild(hGraph, childGraph, false, work));
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  return read<ChildWork>(hNode, phGraph, [&](auto& child) {
    *phGraph = child.graph->handle();
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph) {
  return setChild(hGraphExec, hNode, childGraph);
}
CUresult cuGraphAddEmptyNode(SHOAL_DEPENDENCIES) {
  return SHOAL_ADD((work = std::make_shared<EmptyWork>(), CUDA_SUCCESS));
}

// Events.
CUresult cuGraphAddEventRecordNode(SHOAL_DEPENDENCIES, CUevent event) {
  return SHOAL_ADD(makeEventWork<EventRecordWork>(event, work));
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return read<EventRecordWork>(hNode, event_out,
                               [&](auto& record) { return *event_out = record.handle, CUDA_SUCCESS; });
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return change(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                [&](GraphNode&, WorkPointer& work) { return makeEventWork<EventRecordWork>(event, work); });
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
  return changeExec(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                    [&](GraphNode&, WorkPointer& work) { return makeEventWork<EventRecordWork>(event, work); });
}
CUresult cuGraphAddEventWaitNode(SHOAL_DEPENDENCIES, CUevent event) {
  return SHOAL_ADD(makeEventWork<EventWaitWork>(event, work));
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return read<EventWaitWork>(hNode, event_out, [&](auto& wait) { return *event_out = wait.handle, CUDA_SUCCESS; });
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return change(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                [&](GraphNode&, WorkPointer& work) { return makeEventWork<EventWaitWork>(event, work); });
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
  return changeExec(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                    [&](GraphNode&, WorkPointer& work) { return makeEventWork<EventWaitWork>(event, work); });
}

// Stream memory operations.
CUresult cuGraphAddBatchMemOpNode(SHOAL_DEPENDENCIES, const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  return SHOAL_ADD(nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*nodeParams, work));
}
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams_out) {
  return read<BatchWork>(hNode, nodeParams_out, [&](auto& batch) {
    *nodeParams_out = {batch.context()->handle(), static_cast<unsigned>(batch.operations.size()),
                       const_cast<CUstreamBatchMemOpParams*>(batch.operations.data()), batch.flags};
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  return change(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [&](GraphNode&, WorkPointer& work) {
    return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*nodeParams, work);
  });
}
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  return changeExec(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [&](GraphNode&, WorkPointer& work) {
    return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeWork(*nodeParams, work);
  });
}

// Semaphores of other libraries.
#define SHOAL_SEMAPHORE_NODES(name, Params, Kind, code)                                                        \
  CUresult cuGraphAddExternalSemaphores##name##Node(SHOAL_DEPENDENCIES, const Params* nodeParams) {            \
    return SHOAL_ADD(nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeSemaphoreWork(*nodeParams, work)); \
  }                                                                                                            \
  CUresult cuGraphExternalSemaphores##name##NodeGetParams(CUgraphNode hNode, Params* params_out) {             \
    return read<Kind>(hNode, params_out, [&](auto& found) {                                                    \
      *params_out = {const_cast<CUexternalSemaphore*>(found.handles.data()), found.parameters.data(),          \
                     static_cast<unsigned>(found.handles.size())};                                             \
      return CUDA_SUCCESS;                                                                                     \
    });                                                                                                        \
  }                                                                                                            \
  CUresult cuGraphExternalSemaphores##name##NodeSetParams(CUgraphNode hNode, const Params* nodeParams) {       \
    return change(hNode, code, [&](GraphNode&, WorkPointer& work) {                                            \
      return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeSemaphoreWork(*nodeParams, work);          \
    });                                                                                                        \
  }                                                                                                            \
  CUresult cuGraphExecExternalSemaphores##name##NodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,       \
                                                              const Params* nodeParams) {                      \
    return changeExec(hGraphExec, hNode, code, [&](GraphNode&, WorkPointer& work) {                            \
      return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : makeSemaphoreWork(*nodeParams, work);          \
    });                                                                                                        \
  }
SHOAL_SEMAPHORE_NODES(Signal, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, SignalWork, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL)
SHOAL_SEMAPHORE_NODES(Wait, CUDA_EXT_SEM_WAIT_NODE_PARAMS, WaitWork, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT)

// Memory.
CUresult cuGraphAddMemAllocNode(SHOAL_DEPENDENCIES, CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams) {
  return SHOAL_ADD(makeAllocation(hGraph, nodeParams, work));
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS* params_out) {
  return read<AllocWork>(hNode, params_out, [&](auto& alloc) { return *params_out = alloc.parameters, CUDA_SUCCESS; });
}
CUresult cuGraphAddMemFreeNode(SHOAL_DEPENDENCIES, CUdeviceptr dptr) { return SHOAL_ADD(makeFree(hGraph, dptr, work)); }
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr* dptr_out) {
  return read<FreeWork>(hNode, dptr_out, [&](auto& free) { return *dptr_out = free.address, CUDA_SUCCESS; });
}

// Enabling and disabling kernels, copies and fills.
CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
  return withExec(hGraphExec, hNode, [&](GraphExec& exec, GraphNode& node) {
    if (node.work->type() > CU_GRAPH_NODE_TYPE_MEMSET || isEnabled > 1) return CUDA_ERROR_INVALID_VALUE;
    exec.setEnabled(node, isEnabled == 1);
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled) {
  return withExec(hGraphExec, hNode, [&](GraphExec& exec, GraphNode& node) {
    if (isEnabled == nullptr || node.work->type() > CU_GRAPH_NODE_TYPE_MEMSET) return CUDA_ERROR_INVALID_VALUE;
    *isEnabled = exec.isEnabled(node) ? 1 : 0;
    return CUDA_SUCCESS;
  });
}
