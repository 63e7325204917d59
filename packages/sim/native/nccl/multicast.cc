#include "multicast.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace shoal::nccl {

namespace {

constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

constexpr auto kMulticastSupported = static_cast<CUdevice_attribute>(132);

// The message of a rank after each step.
struct StepReport {
  uint32_t isGood;
  int32_t process, descriptor;
  uint64_t bytes, offset;
};

}  // namespace

bool Multicast::isSupported(const Communicator& communicator) {
  const char* setting = getenv("NCCL_NVLS_ENABLE");
  int isCapable = 0;
  cuDeviceGetAttribute(&isCapable, kMulticastSupported, communicator.device);
  return communicator.ranks() > 1 && isCapable != 0 && (setting == nullptr || strcmp(setting, "0") != 0);
}

bool Multicast::findMemory(const void* buffer) {
  const auto begin = reinterpret_cast<CUdeviceptr>(buffer);
  CUmemGenericAllocationHandle memory = 0;
  if (cuMemRetainAllocationHandle(&memory, const_cast<void*>(buffer)) != CUDA_SUCCESS) return false;
  cuMemRelease(memory);
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
  void* answers[] = {&memory_, &bytes_};
  if (cuPointerGetAttributes(2, wanted, answers, begin) != CUDA_SUCCESS) return false;
  offset_ = begin - memory_;
  return true;
}

bool Multicast::create(int ranks, int& descriptor) {
  const CUmulticastObjectProp properties = {static_cast<unsigned>(ranks), bytes_, kDescriptor, 0};
  if (cuMulticastCreate(&object_, &properties) != CUDA_SUCCESS) return object_ = 0, false;
  return cuMemExportToShareableHandle(&descriptor, object_, kDescriptor, 0) == CUDA_SUCCESS;
}

bool Multicast::import(int process, int descriptor) {
  char link[64];
  snprintf(link, sizeof link, "/proc/%d/fd/%d", process, descriptor);
  const int opened = open(link, O_RDWR | O_CLOEXEC);
  if (opened < 0) return false;
  const CUresult status =
      cuMemImportFromShareableHandle(&object_, reinterpret_cast<void*>(static_cast<intptr_t>(opened)), kDescriptor);
  close(opened);
  return status == CUDA_SUCCESS || (object_ = 0, false);
}

bool Multicast::bind() { return isBound_ = cuMulticastBindAddr(object_, 0, memory_, bytes_, 0) == CUDA_SUCCESS; }

bool Multicast::map() {
  if (cuMemAddressReserve(&address_, bytes_, 0, 0, 0) != CUDA_SUCCESS) return address_ = 0, false;
  if (cuMemMap(address_, bytes_, 0, object_, 0) != CUDA_SUCCESS) {
    cuMemAddressFree(address_, bytes_);
    return address_ = 0, false;
  }
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemSetAccess(address_, bytes_, &access, 1) == CUDA_SUCCESS;
}

Multicast::~Multicast() {
  ScopedContext scope(context_);
  if (address_ != 0) {
    cuMemUnmap(address_, bytes_);
    cuMemAddressFree(address_, bytes_);
  }
  if (isBound_) cuMulticastUnbind(object_, device_, 0, bytes_);
  if (object_ != 0) cuMemRelease(object_);
}

ncclResult_t Multicast::make(Communicator& communicator, const char* function, const void* buffer,
                             std::unique_ptr<Multicast>& made) {
  Endpoint& endpoint = communicator.endpoint();
  std::unique_ptr<Multicast> multicast(new Multicast(communicator.device, communicator.context));
  StepReport own = {};
  std::vector<StepReport> all(static_cast<size_t>(endpoint.ranks));
  own.process = static_cast<int32_t>(getpid());
  // True if all ranks completed the step. Ranks that disagree have not.
  ncclResult_t lost = ncclSuccess;
  const auto haveAll = [&](bool isGood) {
    own.isGood = isGood;
    lost = endpoint.exchange(&own, sizeof own, all.data(), function);
    bool isComplete = lost == ncclSuccess;
    for (const StepReport& report : all)
      isComplete = isComplete && report.isGood != 0 && report.bytes == own.bytes && report.offset == own.offset;
    return isComplete;
  };
  const bool hasMemory = isSupported(communicator) && multicast->findMemory(buffer);
  own.bytes = multicast->bytes_;
  own.offset = multicast->offset_;
  if (!haveAll(hasMemory)) return lost;
  int descriptor = -1;
  const bool isFirst = endpoint.rank == 0;
  const bool isCreated = !isFirst || multicast->create(endpoint.ranks, descriptor);
  own.descriptor = descriptor;
  bool isComplete = haveAll(isCreated);
  isComplete = isComplete && haveAll((isFirst || multicast->import(all[0].process, all[0].descriptor)) &&
                                     cuMulticastAddDevice(multicast->object_, communicator.device) == CUDA_SUCCESS);
  isComplete = isComplete && haveAll(multicast->bind());
  isComplete = isComplete && haveAll(multicast->map());
  if (descriptor >= 0) close(descriptor);
  if (isComplete) made = std::move(multicast);
  return lost;
}

}  // namespace shoal::nccl
