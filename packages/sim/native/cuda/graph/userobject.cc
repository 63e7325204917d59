// User objects: program objects that graphs keep alive.
#include "graph.h"

using namespace shoal;

namespace {

template <class Body>
CUresult withObject(CUuserObject handle, unsigned count, Body&& body) {
  return withGraphs([&]() -> CUresult {
    auto object = userObjects().find(handle);
    if (!object || count == 0) return CUDA_ERROR_INVALID_VALUE;
    return body(object);
  });
}

}  // namespace

CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy, unsigned int initialRefcount,
                            unsigned int flags) {
  return withGraphs([&]() -> CUresult {
    // This flag says that CUDA must not wait for the destructor. It is the only valid value.
    if (object_out == nullptr || destroy == nullptr || initialRefcount == 0 ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
      return CUDA_ERROR_INVALID_VALUE;
    auto object = std::make_shared<UserObject>();
    object->number = userObjects().reserve();
    object->destroy = destroy;
    object->data = ptr;
    object->references = initialRefcount;
    *object_out = reinterpret_cast<CUuserObject>(object->number);
    userObjects().put(object->number, object);
    return CUDA_SUCCESS;
  });
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count) {
  return withObject(handle, count, [&](auto& object) {
    object->references += count;
    return CUDA_SUCCESS;
  });
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  return withObject(handle, count, [&](auto& object) {
    if (object->references < count) return CUDA_ERROR_INVALID_VALUE;
    releaseUserObject(object, count);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject objectHandle, unsigned int count, unsigned int flags) {
  return withObject(objectHandle, count, [&](auto& object) {
    const auto graph = graphs().find(handle);
    if (!graph || flags > CU_GRAPH_USER_OBJECT_MOVE) return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_GRAPH_USER_OBJECT_MOVE && object->references < count) return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_GRAPH_USER_OBJECT_MOVE) object->references += count;
    for (auto& [own, held] : graph->userObjects) {
      if (own != object) continue;
      held += count;
      return CUDA_SUCCESS;
    }
    graph->userObjects.emplace_back(object, count);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphReleaseUserObject(CUgraph handle, CUuserObject objectHandle, unsigned int count) {
  return withObject(objectHandle, count, [&](auto& object) {
    const auto graph = graphs().find(handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    for (auto entry = graph->userObjects.begin(); entry != graph->userObjects.end(); ++entry) {
      if (entry->first != object) continue;
      if (entry->second < count) return CUDA_ERROR_INVALID_VALUE;
      entry->second -= count;
      if (entry->second == 0) graph->userObjects.erase(entry);
      releaseUserObject(object, count);
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}
