// Functions of the whole process: profiler ranges, logs, driver entry points, user objects.
#include "entry.h"

using namespace shoal::cudart;

cudaError_t cudaProfilerStart(void) {
  return onDevice([] { return cuProfilerStart(); });
}
cudaError_t cudaProfilerStop(void) {
  return onDevice([] { return cuProfilerStop(); });
}

cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callbackFunc, void* userData,
                                     cudaLogsCallbackHandle* callback_out) {
  return started([&] { return cuLogsRegisterCallback(callbackFunc, userData, callback_out); });
}
cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle callback) {
  return started([&] { return cuLogsUnregisterCallback(callback); });
}
cudaError_t cudaLogsCurrent(cudaLogIterator* iterator_out, unsigned int flags) {
  return started([&] { return cuLogsCurrent(iterator_out, flags); });
}
cudaError_t cudaLogsDumpToFile(cudaLogIterator* iterator, const char* pathToFile, unsigned int flags) {
  return started([&] { return cuLogsDumpToFile(iterator, pathToFile, flags); });
}
cudaError_t cudaLogsDumpToMemory(cudaLogIterator* iterator, char* buffer, size_t* size, unsigned int flags) {
  return started([&] { return cuLogsDumpToMemory(iterator, buffer, size, flags); });
}

namespace {

// cudaEnableDefault means the default-stream mode that the program was compiled with, which a library cannot know.
CUresult entryPoint(const char* symbol, void** funcPtr, unsigned version, unsigned long long flags,
                    cudaDriverEntryPointQueryResult* driverStatus) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult status = cuGetProcAddress_v2(symbol, funcPtr, static_cast<int>(version), flags, &found);
  if (status == CUDA_SUCCESS && driverStatus != nullptr)
    *driverStatus = static_cast<cudaDriverEntryPointQueryResult>(found);
  return status;
}

unsigned long long ofThread(unsigned long long flags) {
  return flags == cudaEnableDefault ? static_cast<unsigned long long>(cudaEnablePerThreadDefaultStream) : flags;
}

}  // namespace

SHOAL_RT_TWIN(cudaGetDriverEntryPoint, _ptsz,
              (const char* symbol, void** funcPtr, unsigned long long flags,
               cudaDriverEntryPointQueryResult* driverStatus),
              entryPoint(symbol, funcPtr, SHOAL_CUDART_VERSION, flags, driverStatus),
              entryPoint(symbol, funcPtr, SHOAL_CUDART_VERSION, ofThread(flags), driverStatus))
SHOAL_RT_TWIN(cudaGetDriverEntryPointByVersion, _ptsz,
              (const char* symbol, void** funcPtr, unsigned int cudaVersion, unsigned long long flags,
               cudaDriverEntryPointQueryResult* driverStatus),
              entryPoint(symbol, funcPtr, cudaVersion, flags, driverStatus),
              entryPoint(symbol, funcPtr, cudaVersion, ofThread(flags), driverStatus))

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object_out, void* ptr, cudaHostFn_t destroy,
                                 unsigned int initialRefcount, unsigned int flags) {
  return started([&] { return cuUserObjectCreate(object_out, ptr, destroy, initialRefcount, flags); });
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  return started([&] { return cuUserObjectRetain(object, count); });
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return started([&] { return cuUserObjectRelease(object, count); });
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags) {
  return started([&] { return cuGraphRetainUserObject(graph, object, count, flags); });
}
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
  return started([&] { return cuGraphReleaseUserObject(graph, object, count); });
}
