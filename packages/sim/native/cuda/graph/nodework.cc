#include "nodework.h"

#include <cstring>

#include "copywork.h"
#include "core/context.h"
#include "exec.h"
#include "fillwork.h"
#include "hostwork.h"
#include "memopwork.h"
#include "memory.h"

namespace shoal {

namespace {

CUresult contextOf(CUcontext handle, std::shared_ptr<Context>& context) {
  if (handle == nullptr) return currentContext(context);
  context = state().contexts.find(handle);
  return context ? context->status() : CUDA_ERROR_INVALID_CONTEXT;
}

// True if the graph is a child graph. A child graph keeps the memory that it had when it was added.
bool isChild(CUgraph handle) {
  const auto graph = graphs().find(handle);
  return graph->isOwned && !graph->isBody;
}

}  // namespace

CUresult makeWork(const CUDA_KERNEL_NODE_PARAMS& wanted, WorkPointer& work, const LaunchAttributes& attributes) {
  CUfunction function = wanted.func;
  if (function != nullptr && wanted.kern != nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Context> context;
  if (function == nullptr) {
    // A library's kernel means its function in the given context, or in the current context.
    function = reinterpret_cast<CUfunction>(wanted.kern);
    if (const CUresult status = contextOf(wanted.ctx, context)) return status;
  }
  ptx::LaunchShape shape;
  shape.grid = {wanted.gridDimX, wanted.gridDimY, wanted.gridDimZ};
  shape.block = {wanted.blockDimX, wanted.blockDimY, wanted.blockDimZ};
  shape.dynamicSharedBytes = wanted.sharedMemBytes;
  std::shared_ptr<KernelWork> kernel;
  if (const CUresult status =
          KernelWork::create(function, context, shape, attributes, wanted.kernelParams, wanted.extra, kernel))
    return status;
  work = std::move(kernel);
  return CUDA_SUCCESS;
}

CUresult makeWork(const CUDA_MEMCPY3D& wanted, CUcontext owner, WorkPointer& work) {
  std::shared_ptr<Context> context;
  if (const CUresult status = contextOf(owner, context)) return status;
  work = std::make_shared<CopyWork>(wanted, std::move(context));
  return CUDA_SUCCESS;
}

CUresult makeWork(const CUDA_MEMSET_NODE_PARAMS& wanted, CUcontext owner, WorkPointer& work) {
  std::shared_ptr<Context> context;
  if (const CUresult status = contextOf(owner, context)) return status;
  work = std::make_shared<FillWork>(wanted, std::move(context));
  return CUDA_SUCCESS;
}

CUresult makeWork(const CUDA_HOST_NODE_PARAMS& wanted, WorkPointer& work) {
  work = std::make_shared<HostWork>(wanted);
  return CUDA_SUCCESS;
}

CUresult makeWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS& wanted, WorkPointer& work) {
  std::shared_ptr<Context> context;
  if (const CUresult status = contextOf(wanted.ctx, context)) return status;
  if (wanted.count != 0 && wanted.paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  work = std::make_shared<BatchWork>(std::move(context),
                                     std::vector(wanted.paramArray, wanted.paramArray + wanted.count), wanted.flags);
  return CUDA_SUCCESS;
}

CUresult makeChild(CUgraph parent, CUgraph handle, bool isMoved, WorkPointer& work) {
  const auto from = graphs().find(handle);
  if (!from || from->isCaptured) return CUDA_ERROR_INVALID_VALUE;
  if (from->isOwned || !graphs().find(parent)->hasRoomFor(from->height())) return CUDA_ERROR_NOT_SUPPORTED;
  if (!isMoved) {
    auto copy = Graph::createOwned();
    if (const CUresult status = copyGraph(*from, *copy, false)) return status;
    work = std::make_shared<ChildWork>(std::move(copy));
    return CUDA_SUCCESS;
  }
  if (from->hasConditions() || GraphExec::holdsAlone(*from)) return CUDA_ERROR_NOT_SUPPORTED;
  // Refuse a graph that would contain itself. An H200 accepts it and misbehaves later.
  if (from->contains(*graphs().find(parent))) return CUDA_ERROR_INVALID_VALUE;
  work = std::make_shared<ChildWork>(from->owned());
  return CUDA_SUCCESS;
}

CUresult makeAllocation(CUgraph handle, CUDA_MEM_ALLOC_NODE_PARAMS* wanted, WorkPointer& work) {
  if (wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (isChild(handle)) return CUDA_ERROR_NOT_SUPPORTED;
  std::shared_ptr<GraphMemory> memory;
  if (const CUresult status = GraphMemory::create(*wanted, memory)) return status;
  wanted->dptr = memory->address;
  work = std::make_shared<AllocWork>(std::move(memory), *wanted);
  return CUDA_SUCCESS;
}

CUresult makeFree(CUgraph handle, CUdeviceptr address, WorkPointer& work) {
  if (findGraphMemory(address) != nullptr && isChild(handle)) return CUDA_ERROR_NOT_SUPPORTED;
  work = std::make_shared<FreeWork>(address);
  return CUDA_SUCCESS;
}

CUresult makeKernelOf(const GraphNode& node, const CUDA_KERNEL_NODE_PARAMS* wanted, WorkPointer& work) {
  if (wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return makeWork(*wanted, work, static_cast<const KernelWork&>(*node.work).attributes);
}

CUresult makeAny(const GraphNode* node, const CUgraphNodeParams& wanted, WorkPointer& work) {
  switch (wanted.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS kernel;
      static_assert(sizeof kernel == sizeof wanted.kernel);
      memcpy(&kernel, &wanted.kernel, sizeof kernel);
      return node == nullptr ? makeWork(kernel, work) : makeKernelOf(*node, &kernel, work);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: return makeWork(wanted.memcpy.copyParams, wanted.memcpy.copyCtx, work);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& [dst, pitch, value, elementSize, width, height, owner] = wanted.memset;
      return makeWork(CUDA_MEMSET_NODE_PARAMS{dst, pitch, value, elementSize, width, height}, owner, work);
    }
    case CU_GRAPH_NODE_TYPE_HOST: return makeWork(CUDA_HOST_NODE_PARAMS{wanted.host.fn, wanted.host.userData}, work);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return makeEventWork<EventWaitWork>(wanted.eventWait.event, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return makeEventWork<EventRecordWork>(wanted.eventRecord.event, work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const auto& [owner, count, operations, flags] = wanted.memOp;
      return makeWork(CUDA_BATCH_MEM_OP_NODE_PARAMS{owner, count, operations, flags}, work);
    }
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: return makeSemaphoreWork(wanted.extSemSignal, work);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return makeSemaphoreWork(wanted.extSemWait, work);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace shoal
