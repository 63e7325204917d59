#include "multicast.h"

#include <cstdlib>
#include <cstring>

#include "session.h"

namespace shoal::nvshmem {

namespace {

bool isOff() {
  const char* text = getenv("NVSHMEM_DISABLE_NVLS");
  return text != nullptr && *text != '\0' && strcmp(text, "0") != 0;
}

}  // namespace

Multicast::~Multicast() {
  for (auto& [team, range] : ranges_) release(range);
}

void Multicast::release(Range& range) {
  for (auto& [offset, size] : range.parts) cuMemUnmap(range.base + offset, size);
  cuMemAddressFree(range.base, heap_.reserved());
}

void Multicast::forget(nvshmem_team_t team) {
  std::lock_guard lock(mutex_);
  auto found = ranges_.find(team);
  if (found == ranges_.end()) return;
  release(found->second);
  ranges_.erase(found);
}

void Multicast::forgetPart(uint64_t offset) {
  std::lock_guard lock(mutex_);
  for (auto& [team, range] : ranges_) {
    auto found = range.parts.find(offset);
    if (found == range.parts.end()) continue;
    cuMemUnmap(range.base + offset, found->second);
    range.parts.erase(found);
  }
}

// The mapping keeps the multicast object alive.
bool Multicast::map(const Team& team, const std::vector<int>& devices, CUdeviceptr address, uint64_t offset,
                    uint64_t size) {
  CUmulticastObjectProp properties = {};
  properties.numDevices = static_cast<unsigned>(team.group.members.size());
  properties.size = size;
  CUmemGenericAllocationHandle object = 0;
  if (cuMulticastCreate(&object, &properties) != CUDA_SUCCESS) return false;
  bool isFine = true;
  for (const int member : team.group.members)
    isFine = isFine && cuMulticastAddDevice(object, devices[static_cast<size_t>(member)]) == CUDA_SUCCESS;
  for (const int member : team.group.members) {
    CUmemGenericAllocationHandle memory = 0;
    isFine = isFine && cuMemRetainAllocationHandle(&memory, heap_.at(member, offset)) == CUDA_SUCCESS;
    if (!isFine) break;
    isFine = cuMulticastBindMem(object, 0, memory, 0, size, 0) == CUDA_SUCCESS;
    cuMemRelease(memory);
  }
  if (isFine && cuMemMap(address, size, 0, object, 0) == CUDA_SUCCESS) {
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device_;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    isFine = cuMemSetAccess(address, size, &access, 1) == CUDA_SUCCESS;
    if (!isFine) cuMemUnmap(address, size);
  } else {
    isFine = false;
  }
  cuMemRelease(object);
  return isFine;
}

void* Multicast::find(const Team& team, const std::vector<int>& devices, const void* symmetric) {
  if (isOff() || team.group.members.size() < 2) return nullptr;
  std::set<int> different;
  for (const int member : team.group.members) different.insert(devices[static_cast<size_t>(member)]);
  if (different.size() != team.group.members.size()) return nullptr;
  uint64_t offset = 0, start = 0, size = 0;
  if (!heap_.findPart(symmetric, offset, start, size)) return nullptr;
  std::lock_guard lock(mutex_);
  Range& range = ranges_[team.handle];
  if (range.base == 0 && cuMemAddressReserve(&range.base, heap_.reserved(), 0, 0, 0) != CUDA_SUCCESS) {
    ranges_.erase(team.handle);
    return nullptr;
  }
  if (range.parts.count(start) == 0) {
    if (!map(team, devices, range.base + start, start, size)) return nullptr;
    range.parts[start] = size;
  }
  return reinterpret_cast<void*>(range.base + offset);
}

}  // namespace shoal::nvshmem

using namespace shoal::nvshmem;

void* nvshmemx_mc_ptr(nvshmem_team_t handle, const void* pointer) {
  const auto session = running();
  if (!session) return nullptr;
  const auto team = session->teams.find(handle);
  return team ? session->multicast.find(*team, session->devices, pointer) : nullptr;
}
