// Creates a node's work from the parameters of its kind.
#pragma once

#include "eventwork.h"
#include "external/semaphore.h"
#include "graph.h"
#include "module/kernelwork.h"

namespace shoal {

using WorkPointer = std::shared_ptr<const Work>;

CUresult makeWork(const CUDA_KERNEL_NODE_PARAMS& wanted, WorkPointer& work, const LaunchAttributes& attributes = {});
CUresult makeWork(const CUDA_MEMCPY3D& wanted, CUcontext owner, WorkPointer& work);
CUresult makeWork(const CUDA_MEMSET_NODE_PARAMS& wanted, CUcontext owner, WorkPointer& work);
CUresult makeWork(const CUDA_HOST_NODE_PARAMS& wanted, WorkPointer& work);
CUresult makeWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS& wanted, WorkPointer& work);
CUresult makeChild(CUgraph parent, CUgraph handle, bool isMoved, WorkPointer& work);
CUresult makeAllocation(CUgraph handle, CUDA_MEM_ALLOC_NODE_PARAMS* wanted, WorkPointer& work);
CUresult makeFree(CUgraph handle, CUdeviceptr address, WorkPointer& work);
// A kernel node keeps its attributes when its parameters change.
CUresult makeKernelOf(const GraphNode& node, const CUDA_KERNEL_NODE_PARAMS* wanted, WorkPointer& work);
// Reads the union of all parameter kinds. `node` is the node to change, or null for a new node.
CUresult makeAny(const GraphNode* node, const CUgraphNodeParams& wanted, WorkPointer& work);

template <class Kind>
CUresult makeSemaphoreWork(const Kind& wanted, WorkPointer& work) {
  std::shared_ptr<SemaphoreWork<std::remove_cv_t<std::remove_pointer_t<decltype(wanted.paramsArray)>>>> made;
  if (const CUresult status = made->create(wanted.extSemArray, wanted.paramsArray, wanted.numExtSems, made))
    return status;
  work = std::move(made);
  return CUDA_SUCCESS;
}

template <class EventWork>
CUresult makeEventWork(CUevent handle, WorkPointer& work) {
  std::shared_ptr<Event> event;
  if (const CUresult status = resolveEvent(handle, event)) return status;
  work = std::make_shared<EventWork>(std::move(event), handle);
  return CUDA_SUCCESS;
}

}  // namespace shoal
