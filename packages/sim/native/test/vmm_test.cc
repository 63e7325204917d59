// Virtual memory management: address ranges, physical memory, mappings.
#include "mapped.h"

using check::Primary;
using namespace mapped;

TEST(granularity_is_two_mebibytes) {
  Primary primary;
  size_t granularity = 0;
  for (int option = 0; option < 2; ++option) {
    auto properties = onDevice(0);
    OK(cuMemGetAllocationGranularity(&granularity, &properties, static_cast<CUmemAllocationGranularity_flags>(option)));
    EQUAL(granularity, kPiece);
  }
  // Also for properties of memory that cannot be created.
  auto properties = onDevice(99);
  OK(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EQUAL(granularity, kPiece);
  EQUAL(cuMemGetAllocationGranularity(&granularity, &properties, static_cast<CUmemAllocationGranularity_flags>(2)),
        CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemGetAllocationGranularity(nullptr, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemGetAllocationGranularity(&granularity, nullptr, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        CUDA_ERROR_INVALID_VALUE);
}

TEST(address_ranges_are_reserved_and_freed) {
  Primary primary;
  CUdeviceptr range = 0, other = 0;
  OK(cuMemAddressReserve(&range, 8 * kPiece, 0, 0, 0));
  EQUAL(range % kPiece, 0);
  // Nothing is mapped yet, and no copy may treat the range as host memory.
  char host[16];
  EQUAL(cuMemcpyHtoD_v2(range, host, 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpy(reinterpret_cast<CUdeviceptr>(host), range, 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAddressFree(range, kPiece), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAddressFree(range + kPiece, 7 * kPiece), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAddressFree(range, 8 * kPiece));
  EQUAL(cuMemAddressFree(range, 8 * kPiece), CUDA_ERROR_INVALID_VALUE);
  // The addresses are free again, so the hint can be used.
  OK(cuMemAddressReserve(&other, 8 * kPiece, 0, range, 0));
  CHECK(other == range);
  // Now they are taken, so the range is elsewhere.
  CUdeviceptr third = 0;
  OK(cuMemAddressReserve(&third, kPiece, 0, range, 0));
  CHECK(third != range);
  OK(cuMemAddressFree(third, kPiece));
  OK(cuMemAddressFree(other, 8 * kPiece));
  OK(cuMemAddressReserve(&range, kPiece, size_t{1} << 30, 0, 0));
  EQUAL(range % (size_t{1} << 30), 0);
  OK(cuMemAddressFree(range, kPiece));
  EQUAL(cuMemAddressReserve(&range, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  for (size_t odd : {100, 4096, 65536, 3 << 20})
    EQUAL(cuMemAddressReserve(&range, odd, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAddressReserve(&range, kPiece, 0, 100, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAddressReserve(&range, kPiece, 3 << 20, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAddressReserve(&range, kPiece, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAddressReserve(nullptr, kPiece, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAddressReserve(&range, ~size_t{0} << 21, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(wrong_properties_are_refused) {
  Primary primary;
  CUmemGenericAllocationHandle handle = 0;
  auto refused = [&](CUresult want, CUmemAllocationProp properties, size_t size = kPiece) {
    EQUAL(cuMemCreate(&handle, size, &properties, 0), want);
  };
  refused(CUDA_ERROR_INVALID_VALUE, onDevice(0), 0);
  refused(CUDA_ERROR_INVALID_VALUE, onDevice(0), kPiece + 4096);
  refused(CUDA_ERROR_OUT_OF_MEMORY, onDevice(0), size_t{1} << 40);
  refused(CUDA_ERROR_OUT_OF_MEMORY, onDevice(0), ~size_t{0} << 21);
  refused(CUDA_ERROR_INVALID_DEVICE, onDevice(99));
  refused(CUDA_ERROR_INVALID_DEVICE, onDevice(-1));
  auto properties = onDevice(0);
  properties.type = static_cast<CUmemAllocationType>(0);
  refused(CUDA_ERROR_INVALID_VALUE, properties);
  properties = onDevice(0);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
  refused(CUDA_ERROR_INVALID_VALUE, properties);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  refused(CUDA_ERROR_NOT_PERMITTED, properties);
  for (int type : {0, 4, 9}) {
    properties = onDevice(0);
    properties.location.type = static_cast<CUmemLocationType>(type);
    refused(CUDA_ERROR_INVALID_VALUE, properties);
  }
  properties = onDevice(0);
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 12345};
  refused(CUDA_ERROR_INVALID_VALUE, properties);
  properties.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  refused(CUDA_ERROR_INVALID_VALUE, properties);
  properties = onDevice(0);
  properties.allocFlags.compressionType = 7;
  refused(CUDA_ERROR_INVALID_VALUE, properties);
  properties = onDevice(0);
  properties.allocFlags.reserved[3] = 1;
  refused(CUDA_ERROR_INVALID_VALUE, properties);
  properties = onDevice(0);
  EQUAL(cuMemCreate(&handle, kPiece, &properties, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemCreate(nullptr, kPiece, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemCreate(&handle, kPiece, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(properties_come_back) {
  Primary primary;
  auto properties = onDevice(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR |
                                                                           16);  // unknown flags do not matter
  properties.allocFlags.gpuDirectRDMACapable = 2;
  properties.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  const auto handle = create(kPiece, properties);
  CUmemAllocationProp read = {};
  OK(cuMemGetAllocationPropertiesFromHandle(&read, handle));
  EQUAL(read.type, CU_MEM_ALLOCATION_TYPE_PINNED);
  EQUAL(read.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EQUAL(read.location.id, 1);
  EQUAL(read.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  EQUAL(read.allocFlags.gpuDirectRDMACapable, 1);
  // Compression is a hint that is not followed.
  EQUAL(read.allocFlags.compressionType, CU_MEM_ALLOCATION_COMP_NONE);
  OK(cuMemRelease(handle));
  EQUAL(cuMemGetAllocationPropertiesFromHandle(&read, handle), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemRelease(0x1234567890), CUDA_ERROR_INVALID_VALUE);
}

TEST(mapped_memory_is_counted_until_its_last_mapping_goes) {
  Primary primary;
  const size_t before = freeBytes();
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 4 * kPiece, 0, 0, 0));
  EQUAL(freeBytes(), before);
  const auto handle = create(4 * kPiece, onDevice(0));
  EQUAL(before - freeBytes(), 4 * kPiece);
  OK(cuMemMap(range, 4 * kPiece, 0, handle, 0));
  OK(cuMemRelease(handle));
  EQUAL(before - freeBytes(), 4 * kPiece);
  EQUAL(cuMemMap(range, kPiece, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  mapped::allow(range, 4 * kPiece, 0);
  fill(range, 7, 4 * kPiece);
  EQUAL(byteAt(range + 4 * kPiece - 1), 7);
  OK(cuMemUnmap(range, 4 * kPiece));
  EQUAL(freeBytes(), before);
  OK(cuMemAddressFree(range, 4 * kPiece));
}

TEST(wrong_mappings_are_refused) {
  Primary primary;
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 4 * kPiece, 0, 0, 0));
  const auto handle = create(2 * kPiece, onDevice(0));
  // Only the whole memory can be mapped.
  EQUAL(cuMemMap(range, kPiece, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuMemMap(range, kPiece, kPiece, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuMemMap(range, 4096, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuMemMap(range, 2 * kPiece, 4096, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuMemMap(range, 4 * kPiece, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuMemMap(range, 2 * kPiece, ~size_t{0} << 21, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuMemMap(range + 4096, 2 * kPiece, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemMap(range, 0, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemMap(range + 3 * kPiece, 2 * kPiece, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemMap(range, 2 * kPiece, 0, handle, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemMap(range, 2 * kPiece, 0, 0x1234567890, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemMap(kPiece, 2 * kPiece, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemMap(range + kPiece, 2 * kPiece, 0, handle, 0));
  EQUAL(cuMemMap(range, 2 * kPiece, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemMap(range + kPiece, 2 * kPiece, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  // An unmap must not cut a mapping, and must cover at least one.
  EQUAL(cuMemUnmap(range, 2 * kPiece), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemUnmap(range + 2 * kPiece, 2 * kPiece), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemUnmap(range + kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemUnmap(kPiece, kPiece), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemUnmap(range, kPiece));
  EQUAL(cuMemAddressFree(range, 4 * kPiece), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFree_v2(range + kPiece), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFreeAsync(range + kPiece, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemUnmap(range, 9 * kPiece));
  OK(cuMemUnmap(range, 4 * kPiece));
  OK(cuMemRelease(handle));
  OK(cuMemAddressFree(range, 4 * kPiece));
  EQUAL(cuMemUnmap(range, 4 * kPiece), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemMapArrayAsync(nullptr, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(the_same_memory_shows_through_all_its_mappings) {
  Primary primary;
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 6 * kPiece, 0, 0, 0));
  const auto handle = create(2 * kPiece, onDevice(0));
  for (size_t at : {0, 2, 4}) OK(cuMemMap(range + at * kPiece, 2 * kPiece, 0, handle, 0));
  mapped::allow(range, 6 * kPiece, 0);
  fill(range, 1, 2 * kPiece);
  EQUAL(byteAt(range + 2 * kPiece + 5), 1);
  fill(range + 5 * kPiece, 9, kPiece);
  EQUAL(byteAt(range + kPiece), 9);
  EQUAL(byteAt(range + 3 * kPiece), 9);
  EQUAL(byteAt(range + kPiece - 1), 1);
  // One mapping is removed; the others stay.
  OK(cuMemUnmap(range, 2 * kPiece));
  EQUAL(byteAt(range + 2 * kPiece), 1);
  OK(cuMemUnmap(range, 6 * kPiece));
  OK(cuMemRelease(handle));
  OK(cuMemAddressFree(range, 6 * kPiece));
}

TEST(operations_go_across_mappings_side_by_side) {
  Primary primary;
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 4 * kPiece, 0, 0, 0));
  mapped::grow(range, kPiece, 0);
  fill(range, 3, kPiece);
  EQUAL(cuMemsetD8_v2(range, 4, kPiece + 1), CUDA_ERROR_INVALID_VALUE);
  mapped::grow(range + kPiece, 2 * kPiece, 0);
  EQUAL(byteAt(range + 100), 3);
  fill(range + kPiece - 10, 5, 20);
  std::vector<unsigned char> bytes(3 * kPiece, 8), back(3 * kPiece);
  OK(cuMemcpyHtoD_v2(range, bytes.data(), bytes.size()));
  OK(cuMemcpyDtoH_v2(back.data(), range, back.size()));
  CHECK(back == bytes);
  EQUAL(cuMemcpyDtoH_v2(back.data(), range + 1, back.size()), CUDA_ERROR_INVALID_VALUE);
  // Makes a hole in the middle.
  OK(cuMemUnmap(range + kPiece, 2 * kPiece));
  mapped::grow(range + 2 * kPiece, kPiece, 0);
  EQUAL(cuMemcpyDtoH_v2(back.data(), range, back.size()), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemUnmap(range, kPiece));
  OK(cuMemUnmap(range + 2 * kPiece, kPiece));
  OK(cuMemAddressFree(range, 4 * kPiece));
}

TEST(handles_are_retained_from_addresses) {
  Primary primary;
  const size_t before = freeBytes();
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
  const auto handle = create(kPiece, onDevice(0));
  OK(cuMemMap(range, kPiece, 0, handle, 0));
  OK(cuMemRelease(handle));
  CUmemGenericAllocationHandle retained = 0;
  OK(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range + 12345)));
  CHECK(retained == handle);
  OK(cuMemUnmap(range, kPiece));
  EQUAL(before - freeBytes(), kPiece);
  OK(cuMemRelease(retained));
  EQUAL(freeBytes(), before);
  EQUAL(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range)), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemRetainAllocationHandle(nullptr, reinterpret_cast<void*>(range)), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr plain = check::memory(64);
  EQUAL(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(plain)), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(plain));
  OK(cuMemAddressFree(range, kPiece));
}

TEST(memory_of_the_host_can_be_mapped) {
  Primary primary;
  const size_t before = freeBytes();
  for (auto type : {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA}) {
    CUdeviceptr range = 0;
    OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
    CUmemAllocationProp properties = onDevice(0);
    properties.location = {type, 0};
    const auto handle = create(kPiece, properties);
    EQUAL(freeBytes(), before);
    OK(cuMemMap(range, kPiece, 0, handle, 0));
    mapped::allow(range, kPiece, 0);
    CUmemAccessDesc host = {{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemSetAccess(range, kPiece, &host, 1));
    auto* bytes = reinterpret_cast<unsigned char*>(range);
    bytes[7] = 21;
    EQUAL(byteAt(range + 7), 21);
    fill(range, 22, kPiece);
    EQUAL(bytes[kPiece - 1], 22);
    unsigned kind = 0;
    OK(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, range));
    EQUAL(kind, CU_MEMORYTYPE_HOST);
    OK(cuMemUnmap(range, kPiece));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(range, kPiece));
  }
}

TEST(mapped_pointers_tell_what_they_point_to) {
  Primary primary;
  CUdeviceptr range = 0, base = 0;
  size_t size = 0;
  OK(cuMemAddressReserve(&range, 2 * kPiece, 0, 0, 0));
  const auto handle = create(kPiece, onDevice(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  OK(cuMemMap(range + kPiece, kPiece, 0, handle, 0));
  EQUAL(cuMemGetAddressRange_v2(&base, &size, range + kPiece), CUDA_ERROR_NOT_FOUND);
  EQUAL(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, range + kPiece), CUDA_ERROR_INVALID_VALUE);
  mapped::allow(range + kPiece, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
  OK(cuMemGetAddressRange_v2(&base, &size, range + kPiece + 5));
  CHECK(base == range + kPiece);
  EQUAL(size, kPiece);
  // As an attribute, the range is the whole reservation.
  OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, range + kPiece));
  OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, range + kPiece));
  CHECK(base == range);
  EQUAL(size, 2 * kPiece);
  OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, range + kPiece));
  OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, range + kPiece));
  CHECK(base == range + kPiece);
  EQUAL(size, kPiece);
  EQUAL(cuMemGetAddressRange_v2(&base, &size, range), CUDA_ERROR_NOT_FOUND);
  int ordinal = -7, isIpcCapable = -7;
  unsigned long long types = 0, rights = 0;
  CUmemoryPool pool = reinterpret_cast<CUmemoryPool>(7);
  OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, range + kPiece));
  OK(cuPointerGetAttribute(&isIpcCapable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, range + kPiece));
  OK(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, range + kPiece));
  OK(cuPointerGetAttribute(&rights, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, range + kPiece));
  OK(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, range + kPiece));
  EQUAL(ordinal, 1);
  EQUAL(isIpcCapable, 0);
  EQUAL(types, 1u);
  EQUAL(rights, 1u);
  CHECK(pool == nullptr);
  int descriptor = -1;
  EQUAL(cuMemGetHandleForAddressRange(&descriptor, range + kPiece, kPiece, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
        CUDA_ERROR_NOT_SUPPORTED);
  OK(cuMemUnmap(range + kPiece, kPiece));
  OK(cuMemRelease(handle));
  OK(cuMemAddressFree(range, 2 * kPiece));
}

TEST(ten_thousand_ranges_leave_nothing_behind) {
  Primary primary;
  const size_t before = freeBytes();
  const int descriptors = openDescriptors();
  for (int round = 0; round < 10000; ++round) {
    CUdeviceptr range = 0;
    OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
    mapped::grow(range, kPiece, 0);
    if (round % 100 == 0) fill(range, 1, 64);
    OK(cuMemUnmap(range, kPiece));
    OK(cuMemAddressFree(range, kPiece));
  }
  EQUAL(freeBytes(), before);
  EQUAL(openDescriptors(), descriptors);
}
