// Streams and events, through the driver.
#include "entry.h"

using namespace shoal::cudart;

cudaError_t cudaStreamCreate(cudaStream_t* pStream) {
  return onDevice([&] { return cuStreamCreate(pStream, CU_STREAM_DEFAULT); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  return onDevice([&] { return cuStreamCreate(pStream, flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int flags, int priority) {
  return onDevice([&] { return cuStreamCreateWithPriority(pStream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return onDevice([&] { return cuStreamDestroy_v2(stream); });
}

SHOAL_RT_TWIN(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), cuStreamSynchronize(stream),
              cuStreamSynchronize_ptsz(stream))
SHOAL_RT_TWIN(cudaStreamQuery, _ptsz, (cudaStream_t stream), cuStreamQuery(stream), cuStreamQuery_ptsz(stream))
SHOAL_RT_TWIN(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
              cuStreamWaitEvent(stream, event, flags), cuStreamWaitEvent_ptsz(stream, event, flags))
SHOAL_RT_TWIN(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned int* flags), cuStreamGetFlags(stream, flags),
              cuStreamGetFlags_ptsz(stream, flags))
SHOAL_RT_TWIN(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int* priority), cuStreamGetPriority(stream, priority),
              cuStreamGetPriority_ptsz(stream, priority))
SHOAL_RT_TWIN(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long* streamId),
              cuStreamGetId(stream, streamId), cuStreamGetId_ptsz(stream, streamId))
SHOAL_RT_TWIN(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int* device), cuStreamGetDevice(stream, device),
              cuStreamGetDevice_ptsz(stream, device))
#define SHOAL_ATTRIBUTE static_cast<CUlaunchAttributeID>(attr)
SHOAL_RT_TWIN(cudaStreamGetAttribute, _ptsz,
              (cudaStream_t hStream, cudaLaunchAttributeID attr, cudaLaunchAttributeValue* value_out),
              cuStreamGetAttribute(hStream, SHOAL_ATTRIBUTE, reinterpret_cast<CUlaunchAttributeValue*>(value_out)),
              cuStreamGetAttribute_ptsz(hStream, SHOAL_ATTRIBUTE, reinterpret_cast<CUlaunchAttributeValue*>(value_out)))
SHOAL_RT_TWIN(cudaStreamSetAttribute, _ptsz,
              (cudaStream_t hStream, cudaLaunchAttributeID attr, const cudaLaunchAttributeValue* value),
              cuStreamSetAttribute(hStream, SHOAL_ATTRIBUTE, reinterpret_cast<const CUlaunchAttributeValue*>(value)),
              cuStreamSetAttribute_ptsz(hStream, SHOAL_ATTRIBUTE,
                                        reinterpret_cast<const CUlaunchAttributeValue*>(value)))
SHOAL_RT_TWIN(cudaStreamCopyAttributes, _ptsz, (cudaStream_t dst, cudaStream_t src), cuStreamCopyAttributes(dst, src),
              cuStreamCopyAttributes_ptsz(dst, src))
SHOAL_RT_TWIN(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t fn, void* userData),
              cuLaunchHostFunc(stream, fn, userData), cuLaunchHostFunc_ptsz(stream, fn, userData))

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return onDevice([&] { return cuEventCreate(event, CU_EVENT_DEFAULT); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return onDevice([&] { return cuEventCreate(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return onDevice([&] { return cuEventDestroy_v2(event); });
}

SHOAL_RT_TWIN(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), cuEventRecord(event, stream),
              cuEventRecord_ptsz(event, stream))
SHOAL_RT_TWIN(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
              cuEventRecordWithFlags(event, stream, flags), cuEventRecordWithFlags_ptsz(event, stream, flags))

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return onDevice([&] { return cuEventQuery(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return onDevice([&] { return cuEventSynchronize(event); });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return onDevice([&] { return cuEventElapsedTime_v2(ms, start, end); });
}
