// The API of multicast objects: creating them, adding devices, binding memory.
#include "core/allocation.h"
#include "core/entry.h"
#include "object.h"
#include "vmm/physical.h"

using namespace shoal;

namespace {

// The multicast object of a handle, or null.
std::shared_ptr<MulticastObject> findObject(CUmemGenericAllocationHandle handle) {
  auto found = memoryHandles().find(handle);
  return found ? found->multicast : nullptr;
}

// The checks that both ways of binding share.
CUresult checkPlace(MulticastObject& object, size_t offset, size_t size, unsigned long long flags) {
  if (flags != 0 || size == 0 || !isGranular(offset) || !isGranular(size)) return CUDA_ERROR_INVALID_VALUE;
  if (offset > object.size() || size > object.size() - offset) return CUDA_ERROR_INVALID_VALUE;
  return object.waitForTeam();
}

CUresult bindMemory(MulticastObject& object, size_t offset, size_t size, Device* device, unsigned memoryTypes,
                    std::shared_ptr<SharedFile> file, size_t memoryOffset, std::shared_ptr<const void> owner) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!object.hasDevice(device->ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  // If other processes can import the object, its memory must be shareable, too.
  if (object.handleTypes() != 0 && memoryTypes == 0) return CUDA_ERROR_INVALID_VALUE;
  return object.bind(offset, size, {device->ordinal, std::move(file), memoryOffset, std::move(owner)});
}

}  // namespace

CUresult cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp* prop,
                                   CUmulticastGranularity_flags option) {
  return initialised([&]() -> CUresult {
    if (granularity == nullptr || prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (option != CU_MULTICAST_GRANULARITY_MINIMUM && option != CU_MULTICAST_GRANULARITY_RECOMMENDED)
      return CUDA_ERROR_INVALID_VALUE;
    *granularity = kGranularity;
    return CUDA_SUCCESS;
  });
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* mcHandle, const CUmulticastObjectProp* prop) {
  return initialised([&]() -> CUresult {
    if (mcHandle == nullptr || prop == nullptr || prop->flags != 0 || prop->size == 0 || !isGranular(prop->size))
      return CUDA_ERROR_INVALID_VALUE;
    if (prop->numDevices == 0 || prop->numDevices > state().devices.size() ||
        (prop->handleTypes & ~uint64_t{kKnownHandleTypes}) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkHandleTypes(static_cast<unsigned>(prop->handleTypes))) return status;
    *mcHandle = memoryHandles().add(MulticastObject::create(*prop));
    return CUDA_SUCCESS;
  });
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev) {
  return initialised([&]() -> CUresult {
    auto object = findObject(mcHandle);
    if (!object) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (const CUresult status = findDevice(dev, device)) return status;
    return object->addDevice(dev);
  });
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                            CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                            unsigned long long flags) {
  return initialised([&]() -> CUresult {
    auto object = findObject(mcHandle);
    auto memory = memoryHandles().find(memHandle);
    if (!object || !memory || !memory->physical || !isGranular(memOffset)) return CUDA_ERROR_INVALID_VALUE;
    auto physical = memory->physical;
    if (memOffset > physical->size || size > physical->size - memOffset) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkPlace(*object, mcOffset, size, flags)) return status;
    const auto types = static_cast<unsigned>(physical->properties.requestedHandleTypes);
    return bindMemory(*object, mcOffset, size, physical->device, types, physical->file, memOffset, physical);
  });
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr, size_t size,
                             unsigned long long flags) {
  return initialised([&]() -> CUresult {
    auto object = findObject(mcHandle);
    auto allocation = state().allocations.covering(memptr);
    if (!object || !allocation || !allocation->backing || !isGranular(memptr) || !allocation->holds(memptr, size))
      return CUDA_ERROR_INVALID_VALUE;
    size_t memoryOffset = 0;
    auto file = allocation->backing->locate(memptr, memoryOffset);
    if (!file) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = checkPlace(*object, mcOffset, size, flags)) return status;
    auto owner = allocation->backing->memory();
    // The handle of an imported allocation cannot be exported, but its memory may be shareable.
    const unsigned types =
        allocation->kind == MemoryKind::mapped
            ? static_cast<unsigned>(static_cast<const Physical*>(owner.get())->properties.requestedHandleTypes)
            : allocation->backing->handleTypes();
    return bindMemory(*object, mcOffset, size, allocation->device, types, std::move(file), memoryOffset,
                      std::move(owner));
  });
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset, size_t size) {
  return initialised([&]() -> CUresult {
    auto object = findObject(mcHandle);
    if (!object || size == 0 || !isGranular(mcOffset) || !isGranular(size)) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (const CUresult status = findDevice(dev, device)) return status;
    if (!object->hasDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
    if (mcOffset > object->size() || size > object->size() - mcOffset) return CUDA_ERROR_INVALID_VALUE;
    return object->unbind(dev, mcOffset, size);
  });
}
