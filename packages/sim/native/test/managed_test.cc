// Managed memory: advice and prefetches per page, attachments, and the entry points of each version.
#include "check.h"

using check::Primary;

namespace {

constexpr size_t kPage = 4096;
constexpr CUmemLocation kFirst = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
constexpr CUmemLocation kSecond = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
constexpr CUmemLocation kHost = {CU_MEM_LOCATION_TYPE_HOST, 0};

CUdeviceptr managed(size_t bytes) {
  CUdeviceptr made = 0;
  OK(cuMemAllocManaged(&made, bytes, CU_MEM_ATTACH_GLOBAL));
  return made;
}

int attribute(CUmem_range_attribute wanted, CUdeviceptr at, size_t bytes) {
  int value = -99;
  OK(cuMemRangeGetAttribute(&value, sizeof value, wanted, at, bytes));
  return value;
}

}  // namespace

TEST(advice_is_kept_by_page) {
  Primary primary;
  const CUdeviceptr memory = managed(4 * kPage);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 4 * kPage), 0);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, 4 * kPage), -2);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, memory, 4 * kPage), CU_MEM_LOCATION_TYPE_NONE);

  OK(cuMemAdvise_v2(memory + kPage, 2 * kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, {}));
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 4 * kPage), 0);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory + kPage, 2 * kPage), 1);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory + kPage, 2 * kPage + 1), 0);
  // Advice applies to the whole page.
  OK(cuMemAdvise_v2(memory + kPage + 17, 1, CU_MEM_ADVISE_UNSET_READ_MOSTLY, {}));
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory + 2 * kPage - 1, 1), 0);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory + 2 * kPage, kPage), 1);

  OK(cuMemAdvise(memory, 2 * kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, -1));
  OK(cuMemAdvise(memory + 2 * kPage, 2 * kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 1));
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, kPage), -1);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, memory, kPage), CU_MEM_LOCATION_TYPE_HOST);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, memory + 3 * kPage, kPage), 1);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, 4 * kPage), -2);
  OK(cuMemAdvise(memory, 4 * kPage, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 77));
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory + 3 * kPage, kPage), -2);

  OK(cuMemAdvise_v2(memory, 4 * kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, kSecond));
  OK(cuMemAdvise_v2(memory, kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, kHost));
  int devices[3] = {};
  OK(cuMemRangeGetAttribute(devices, sizeof devices, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, memory, kPage));
  EQUAL(devices[0], -1);
  EQUAL(devices[1], 1);
  EQUAL(devices[2], -2);
  OK(cuMemRangeGetAttribute(devices, sizeof devices, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, memory, 4 * kPage));
  EQUAL(devices[0], 1);
  EQUAL(devices[1], -2);
  OK(cuMemAdvise_v2(memory, 4 * kPage, CU_MEM_ADVISE_UNSET_ACCESSED_BY, kSecond));
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, memory, 4 * kPage), -2);
  OK(cuMemFree_v2(memory));

  // Later memory at the same address has no advice.
  const CUdeviceptr next = managed(4 * kPage);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, next + 2 * kPage, kPage), 0);
  OK(cuMemFree_v2(next));
}

TEST(prefetches_are_remembered) {
  Primary primary;
  const CUdeviceptr memory = managed(2 * kPage);
  const CUstream stream = check::stream();
  *reinterpret_cast<int*>(memory) = 5;
  OK(cuMemPrefetchAsync(memory, 2 * kPage, 1, stream));
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, 2 * kPage), 1);
  OK(cuMemPrefetchAsync_v2_ptsz(memory, 1, kHost, 0, nullptr));
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, kPage), -1);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, memory, kPage), CU_MEM_LOCATION_TYPE_HOST);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, memory + kPage, kPage), 1);
  EQUAL(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, 2 * kPage), -2);
  EQUAL(*reinterpret_cast<int*>(memory), 5);
  OK(cuStreamDestroy_v2(stream));
  OK(cuMemFree_v2(memory));
}

TEST(wrong_advice_is_refused) {
  Primary primary;
  const CUdeviceptr memory = managed(kPage), other = check::memory(kPage);
  EQUAL(cuMemAdvise_v2(other, kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, {}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAdvise_v2(memory, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, {}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAdvise_v2(memory, kPage + 1, CU_MEM_ADVISE_SET_READ_MOSTLY, {}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAdvise_v2(memory, kPage, static_cast<CUmem_advise>(7), kFirst), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAdvise_v2(memory, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_DEVICE, 99}),
        CUDA_ERROR_INVALID_DEVICE);
  EQUAL(cuMemAdvise_v2(memory, kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, {CU_MEM_LOCATION_TYPE_NONE, 0}),
        CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAdvise(memory, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, -7), CUDA_ERROR_INVALID_DEVICE);
  EQUAL(cuMemPrefetchAsync_v2(memory, kPage, kFirst, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPrefetchAsync_v2(other, kPage, kFirst, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPrefetchAsync(memory, kPage, 99, nullptr), CUDA_ERROR_INVALID_DEVICE);
  EQUAL(cuMemPrefetchAsync_v2(memory, kPage, kFirst, 0, reinterpret_cast<CUstream>(0x1234)), CUDA_ERROR_INVALID_HANDLE);

  int value = -99;
  EQUAL(cuMemRangeGetAttribute(&value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, kPage), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemRangeGetAttribute(&value, 0, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, memory, kPage), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemRangeGetAttribute(nullptr, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, kPage),
        CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemRangeGetAttribute(&value, 4, static_cast<CUmem_range_attribute>(9), memory, kPage),
        CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, other, kPage), CUDA_ERROR_INVALID_VALUE);
  EQUAL(value, -99);
  OK(cuMemFree_v2(other));
  OK(cuMemFree_v2(memory));
}

TEST(memory_is_attached_as_a_whole) {
  Primary primary;
  const CUdeviceptr memory = managed(2 * kPage);
  const CUstream stream = check::stream();
  OK(cuStreamAttachMemAsync(stream, memory, 0, CU_MEM_ATTACH_SINGLE));
  OK(cuStreamAttachMemAsync(stream, memory, 2 * kPage, CU_MEM_ATTACH_HOST));
  OK(cuStreamAttachMemAsync_ptsz(nullptr, memory, 0, CU_MEM_ATTACH_GLOBAL));
  EQUAL(cuStreamAttachMemAsync(nullptr, memory, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuStreamAttachMemAsync(stream, memory, kPage, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuStreamAttachMemAsync(stream, memory + kPage, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuStreamAttachMemAsync(stream, memory, 0, 3), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamDestroy_v2(stream));
  OK(cuMemFree_v2(memory));
}

TEST(entry_points_come_by_version) {
  Primary primary;
  auto entry = [](const char* name, int version, cuuint64_t flags) {
    void* found = nullptr;
    OK(cuGetProcAddress_v2(name, &found, version, flags, nullptr));
    return found;
  };
  CHECK(entry("cuMemAdvise", 8000, 0) == reinterpret_cast<void*>(&cuMemAdvise));
  CHECK(entry("cuMemAdvise", 13000, 0) == reinterpret_cast<void*>(&cuMemAdvise_v2));
  CHECK(entry("cuMemPrefetchAsync", 12010, 0) == reinterpret_cast<void*>(&cuMemPrefetchAsync));
  CHECK(entry("cuMemPrefetchAsync", 12020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) ==
        reinterpret_cast<void*>(&cuMemPrefetchAsync_v2_ptsz));
  CHECK(entry("cuStreamAttachMemAsync", 6000, 0) == reinterpret_cast<void*>(&cuStreamAttachMemAsync));
  CHECK(entry("cuMemRangeGetAttributes", 8000, 0) == reinterpret_cast<void*>(&cuMemRangeGetAttributes));
}
