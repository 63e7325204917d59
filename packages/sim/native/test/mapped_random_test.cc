// Calls in random order, with valid, stale, misaligned and invented arguments. Nothing crashes, and nothing leaks.
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include "mapped.h"

using check::Primary;
using namespace mapped;

namespace {

// An address where nothing is mapped, not even the sanitizers' own memory.
constexpr CUdeviceptr kElsewhere = 0x7ea000000000;

// Do not wait for a team that never becomes complete.
const bool isImpatient = setenv("SHOAL_SIM_TIMEOUT_SECONDS", "0.001", 1) == 0;

class Chaos {
 public:
  explicit Chaos(unsigned seed) : random_(seed) {}

  void step() {
    switch (random_() % 16) {
      case 0: reserveSome(); break;
      case 1: freeSome(); break;
      case 2:
      case 3: createSome(); break;
      case 4: releaseSome(); break;
      case 5:
      case 6: mapSome(); break;
      case 7: unmapSome(); break;
      case 8: allowSome(); break;
      case 9: useSome(); break;
      case 10: retainSome(); break;
      case 11: shareSome(); break;
      case 12: multicastSome(); break;
      case 13: bindSome(); break;
      case 14: importSome(); break;
      default: askSome(); break;
    }
  }

  void tidy() {
    while (!mapped_.empty()) {
      OK(cuMemUnmap(mapped_.begin()->first, mapped_.begin()->second));
      mapped_.erase(mapped_.begin());
    }
    for (auto& [at, size] : ranges_) OK(cuMemAddressFree(at, size));
    for (auto handle : handles_) OK(cuMemRelease(handle));
    for (int descriptor : descriptors_) close(descriptor);
  }

 private:
  template <class List>
  auto pick(const List& list) {
    auto at = list.begin();
    std::advance(at, random_() % list.size());
    return *at;
  }
  size_t size() {
    if (random_() % 8 == 0) return random_() % 2 == 0 ? 4096 : 0;
    return (1 + random_() % 4) * kPiece;
  }
  size_t offset() { return random_() % 10 == 0 ? 4096 : random_() % 3 * kPiece; }
  CUdeviceptr address() {
    if (ranges_.empty() || random_() % 16 == 0) return random_() % 2 == 0 ? kElsewhere : random_();
    return pick(ranges_).first + random_() % 6 * kPiece + (random_() % 16 == 0 ? 512 : 0);
  }
  CUmemGenericAllocationHandle handle() {
    if (random_() % 16 == 0 && !stale_.empty()) return pick(stale_);
    return handles_.empty() || random_() % 16 == 0 ? random_() : pick(handles_);
  }
  int device() { return random_() % 10 == 0 ? 9 : static_cast<int>(random_() % 2); }

  void reserveSome() {
    CUdeviceptr at = 0;
    const size_t wanted = size() * 2;
    if (ranges_.size() < 6 && cuMemAddressReserve(&at, wanted, random_() % 3 * kPiece,
                                                  random_() % 2 == 0 ? address() : 0, 0) == CUDA_SUCCESS) {
      ranges_.push_back({at, wanted});
    }
  }
  void freeSome() {
    if (ranges_.empty()) return;
    const auto [at, bytes] = pick(ranges_);
    const bool isUsed = std::any_of(mapped_.begin(), mapped_.end(), [at = at, bytes = bytes](auto& each) {
      return each.first >= at && each.first < at + bytes;
    });
    EQUAL(cuMemAddressFree(at, bytes), isUsed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
    if (!isUsed) ranges_.erase(std::find(ranges_.begin(), ranges_.end(), std::make_pair(at, bytes)));
  }
  void createSome() {
    CUmemGenericAllocationHandle made = 0;
    const auto properties = onDevice(device(), random_() % 2);
    if (handles_.size() < 12 && cuMemCreate(&made, size(), &properties, 0) == CUDA_SUCCESS) handles_.push_back(made);
  }
  void releaseSome() {
    if (handles_.empty()) return;
    const auto which = pick(handles_);
    OK(cuMemRelease(which));
    handles_.erase(std::find(handles_.begin(), handles_.end(), which));
    stale_.push_back(which);
  }
  void mapSome() {
    const CUdeviceptr at = address();
    const size_t bytes = size();
    if (cuMemMap(at, bytes, offset(), handle(), 0) == CUDA_SUCCESS) mapped_[at] = bytes;
  }
  void unmapSome() {
    OK(cuCtxSynchronize());  // queued work would fail after the unmap
    if (mapped_.empty() || random_() % 4 == 0) {
      const CUdeviceptr at = address();
      const size_t bytes = size();
      if (cuMemUnmap(at, bytes) != CUDA_SUCCESS) return;
      // Only whole mappings and holes, within the reservation.
      const auto around = std::find_if(ranges_.begin(), ranges_.end(),
                                       [at](auto& each) { return at >= each.first && at < each.first + each.second; });
      CHECK(around != ranges_.end());
      const CUdeviceptr end = std::min(at + bytes, around->first + around->second);
      mapped_.erase(mapped_.lower_bound(at), mapped_.lower_bound(end));
      return;
    }
    const auto [at, bytes] = pick(mapped_);
    OK(cuMemUnmap(at, bytes));
    mapped_.erase(at);
  }
  void allowSome() {
    OK(cuCtxSynchronize());
    const CUmemAccessDesc access[] = {
        {{CU_MEM_LOCATION_TYPE_DEVICE, device()}, static_cast<CUmemAccess_flags>(random_() % 4)},
        {{static_cast<CUmemLocationType>(random_() % 5), 0}, CU_MEM_ACCESS_FLAGS_PROT_READ}};
    if (mapped_.empty() || random_() % 4 == 0) {
      cuMemSetAccess(address(), size(), access, 1 + random_() % 2);
    } else {
      const auto [at, bytes] = pick(mapped_);
      cuMemSetAccess(at, bytes, access, 1);
    }
  }
  void useSome() {
    char bytes[64] = {};
    const CUdeviceptr at = mapped_.empty() ? address() : pick(mapped_).first + random_() % kPiece;
    cuMemsetD8Async(at, 1, random_() % (2 * kPiece), nullptr);
    cuMemcpyDtoH_v2(bytes, at, sizeof bytes);
    cuMemcpyHtoD_v2(at, bytes, sizeof bytes);
    cuMemcpy(at, address(), 4096);
  }
  void retainSome() {
    CUmemGenericAllocationHandle again = 0;
    const CUdeviceptr at = address();
    if (cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(at)) == CUDA_SUCCESS) handles_.push_back(again);
  }
  void shareSome() {
    int descriptor = -1;
    if (descriptors_.size() < 8 &&
        cuMemExportToShareableHandle(&descriptor, handle(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
            CUDA_SUCCESS) {
      descriptors_.push_back(descriptor);
    }
  }
  void importSome() {
    CUmemGenericAllocationHandle made = 0;
    const int descriptor =
        descriptors_.empty() || random_() % 4 == 0 ? static_cast<int>(random_() % 64) : pick(descriptors_);
    if (cuMemImportFromShareableHandle(&made, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS) {
      handles_.push_back(made);
    }
  }
  void multicastSome() {
    const CUmulticastObjectProp properties = {static_cast<unsigned>(1 + random_() % 2), size(), 0, 0};
    CUmemGenericAllocationHandle made = 0;
    if (handles_.size() < 12 && cuMulticastCreate(&made, &properties) == CUDA_SUCCESS) {
      handles_.push_back(made);
      cuMulticastAddDevice(made, 0);
    }
    cuMulticastAddDevice(handle(), device());
  }
  void bindSome() {
    cuMulticastBindMem(handle(), offset(), handle(), offset(), size(), 0);
    cuMulticastBindAddr(handle(), offset(), address(), size(), 0);
    if (random_() % 2 == 0) cuMulticastUnbind(handle(), device(), offset(), size());
  }
  void askSome() {
    CUmemAllocationProp properties;
    unsigned long long rights = 0;
    const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, device()};
    unsigned char out[64];
    cuMemGetAllocationPropertiesFromHandle(&properties, handle());
    cuMemGetAccess(&rights, &location, address());
    for (int attribute = 0; attribute <= 22; ++attribute)
      cuPointerGetAttribute(out, static_cast<CUpointer_attribute>(attribute), address());
  }

  std::mt19937_64 random_;
  std::vector<std::pair<CUdeviceptr, size_t>> ranges_;
  std::map<CUdeviceptr, size_t> mapped_;
  std::vector<CUmemGenericAllocationHandle> handles_, stale_;
  std::vector<int> descriptors_;
};

}  // namespace

TEST(random_calls_neither_crash_nor_leak) {
  CHECK(isImpatient);
  Primary primary;
  const size_t before = freeBytes();
  const int descriptors = openDescriptors();
  for (unsigned seed = 0; seed < 200; ++seed) {
    try {
      Chaos chaos(seed);
      for (int round = 0; round < 150; ++round) chaos.step();
      OK(cuCtxSynchronize());
      chaos.tidy();
      EQUAL(freeBytes(), before);
      EQUAL(openDescriptors(), descriptors);
    } catch (const std::exception& error) {
      throw check::Failure("seed " + std::to_string(seed) + ": " + error.what());
    }
  }
}
