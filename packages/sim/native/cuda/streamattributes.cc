// What is set of streams for all their kernels, and kept: nothing here runs otherwise for it.
#include "core/entry.h"

using namespace shoal;

namespace {

bool isStreamAttribute(CUlaunchAttributeID attribute) {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: return true;
    default: return false;
  }
}

bool isValid(CUlaunchAttributeID attribute, const CUlaunchAttributeValue& value) {
  constexpr unsigned char kDomains = 4;
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      return value.accessPolicyWindow.hitRatio >= 0 && value.accessPolicyWindow.hitRatio <= 1 && value.accessPolicyWindow.missProp != CU_ACCESS_PROPERTY_PERSISTING;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: return value.syncPolicy >= CU_SYNC_POLICY_AUTO && value.syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return value.memSyncDomainMap.default_ < kDomains && value.memSyncDomainMap.remote < kDomains;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: return value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT || value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    default: return true;
  }
}

CUlaunchAttributeValue read(Stream& stream, CUlaunchAttributeID attribute) {
  CUlaunchAttributeValue value{};
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
    value.priority = stream.priority;
    return value;
  }
  std::lock_guard lock(stream.attributesMutex);
  if (const auto set = stream.attributes.find(attribute); set != stream.attributes.end()) return set->second;
  if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) value.syncPolicy = CU_SYNC_POLICY_AUTO;
  if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value.memSyncDomainMap.remote = 1;
  return value;
}

CUresult get(CUstream handle, CUlaunchAttributeID attribute, CUlaunchAttributeValue* out, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) {
    if (out == nullptr || !isStreamAttribute(attribute)) return CUDA_ERROR_INVALID_VALUE;
    *out = read(*stream, attribute);
    return CUDA_SUCCESS;
  });
}

CUresult set(CUstream handle, CUlaunchAttributeID attribute, const CUlaunchAttributeValue* value, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) {
    if (value == nullptr || !isStreamAttribute(attribute) || !isValid(attribute, *value)) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
      stream->priority = Stream::nearestPriority(value->priority);
      return CUDA_SUCCESS;
    }
    std::lock_guard lock(stream->attributesMutex);
    stream->attributes[attribute] = *value;
    return CUDA_SUCCESS;
  });
}

CUresult copy(CUstream to, CUstream from, bool perThread) {
  return onStream(from, perThread, [&](auto& source, auto& context) {
    return onStream(to, perThread, [&](auto& target, auto& other) {
      if (context != other) return CUDA_ERROR_INVALID_VALUE;
      std::map<int, CUlaunchAttributeValue> attributes;
      {
        std::lock_guard lock(source->attributesMutex);
        attributes = source->attributes;
      }
      std::lock_guard lock(target->attributesMutex);
      target->attributes = std::move(attributes);
      target->priority = source->priority.load();
      return CUDA_SUCCESS;
    });
  });
}

}  // namespace

SHOAL_TWIN(cuStreamGetAttribute, _ptsz, (CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out), get(hStream, attr, value_out, perThread))
SHOAL_TWIN(cuStreamSetAttribute, _ptsz, (CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* value), set(hStream, attr, value, perThread))
SHOAL_TWIN(cuStreamCopyAttributes, _ptsz, (CUstream dst, CUstream src), copy(dst, src, perThread))
