// Stream attributes. They are stored and returned, but do not change how kernels run here.
#include "core/entry.h"
#include "core/launchattributes.h"

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

CUlaunchAttributeValue read(Stream& stream, CUlaunchAttributeID attribute) {
  CUlaunchAttributeValue value{};
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
    value.priority = stream.priority;
    return value;
  }
  std::lock_guard lock(stream.attributesMutex);
  if (const auto set = stream.attributes.find(attribute); set != stream.attributes.end()) return set->second;
  // Hardware reports -1 before a policy is set.
  if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
    value.syncPolicy = static_cast<CUsynchronizationPolicy>(-1);
  else value = usualAttribute(attribute);
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
    if (value == nullptr || !isStreamAttribute(attribute) || !isValidAttribute(attribute, *value))
      return CUDA_ERROR_INVALID_VALUE;
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

SHOAL_TWIN(cuStreamGetAttribute, _ptsz, (CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out),
           get(hStream, attr, value_out, perThread))
SHOAL_TWIN(cuStreamSetAttribute, _ptsz, (CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* value),
           set(hStream, attr, value, perThread))
SHOAL_TWIN(cuStreamCopyAttributes, _ptsz, (CUstream dst, CUstream src), copy(dst, src, perThread))
