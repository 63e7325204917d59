// Memory pools: statistics, thresholds, reuse, access rights, sharing.
#include <unistd.h>

#include <iterator>

#include "mapped.h"
#include "process.h"

using check::Primary;
using namespace mapped;

namespace {

CUmemPoolProps poolOn(int device, unsigned handleTypes = 0) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  properties.handleTypes = static_cast<CUmemAllocationHandleType>(handleTypes);
  return properties;
}

CUmemoryPool makePool(const CUmemPoolProps& properties) {
  CUmemoryPool pool = nullptr;
  OK(cuMemPoolCreate(&pool, &properties));
  return pool;
}

uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  uint64_t value = 0;
  OK(cuMemPoolGetAttribute(pool, which, &value));
  return value;
}

void set(CUmemoryPool pool, CUmemPool_attribute which, uint64_t value) {
  OK(cuMemPoolSetAttribute(pool, which, &value));
}

CUdeviceptr take(CUmemoryPool pool, size_t bytes, CUstream stream) {
  CUdeviceptr memory = 0;
  OK(cuMemAllocFromPoolAsync(&memory, bytes, pool, stream));
  return memory;
}

constexpr auto kReserved = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
constexpr auto kUsed = CU_MEMPOOL_ATTR_USED_MEM_CURRENT;

// Reads the parent's data, writes its own, and waits for a message before it ends.
void useImported(process::Peer& parent) {
  const int descriptor = parent.receiveDescriptor();
  auto data = parent.receive<CUmemPoolPtrExportData>();
  Primary primary;
  CUmemoryPool pool = nullptr;
  CUdeviceptr memory = 0, again = 0;
  OK(cuMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  close(descriptor);
  OK(cuMemPoolImportPointer(&memory, pool, &data));
  EQUAL(cuMemPoolImportPointer(&again, pool, &data), CUDA_ERROR_ALREADY_MAPPED);
  EQUAL(byteAt(memory + 99), 42);
  fill(memory, 43, 100);
  EQUAL(cuMemsetD8_v2(memory, 1, 5001), CUDA_ERROR_INVALID_VALUE);
  // The importer cannot allocate from the pool.
  EQUAL(cuMemAllocFromPoolAsync(&again, 64, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolExportPointer(&data, memory), CUDA_ERROR_INVALID_VALUE);
  parent.send(1);
  parent.receive<int>();  // wait until the parent has finished
  EQUAL(byteAt(memory + 50), 43);
  OK(cuMemFreeAsync(memory, nullptr));
  OK(cuCtxSynchronize());
  OK(cuMemPoolDestroy(pool));
}

}  // namespace

ROLES({"use imported", useImported});

TEST(statistics_follow_allocations) {
  Primary primary;
  CUstream stream = check::stream();
  CUmemoryPool pool = makePool(poolOn(0));
  const size_t before = freeBytes();
  EQUAL(attribute(pool, kReserved), 0u);
  CUdeviceptr one = take(pool, 1000, stream), two = take(pool, 3 << 20, stream);
  EQUAL(attribute(pool, kUsed), 1000u + (3 << 20));
  EQUAL(attribute(pool, kReserved), 32u << 20);
  CUdeviceptr three = take(pool, (32 << 20) + 1, stream);
  EQUAL(attribute(pool, kReserved), 96u << 20);
  EQUAL(before - freeBytes(), 96u << 20);
  OK(cuMemFreeAsync(three, stream));
  OK(cuMemFreeAsync(two, stream));
  EQUAL(attribute(pool, kUsed), 1000u);
  EQUAL(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1001u + (35 << 20));
  // With a threshold of 0, a synchronisation releases unused memory.
  OK(cuStreamSynchronize(stream));
  EQUAL(attribute(pool, kReserved), 32u << 20);
  EQUAL(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 96u << 20);
  uint64_t zero = 0, one64 = 1;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  EQUAL(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 32u << 20);
  EQUAL(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1000u);
  EQUAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one64), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolSetAttribute(pool, kUsed, &zero), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(99), &zero), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(0), &zero), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolGetAttribute(pool, kUsed, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(one));
  OK(cuMemPoolDestroy(pool));
  OK(cuCtxSynchronize());
  EQUAL(freeBytes(), before);
}

TEST(a_threshold_keeps_memory_for_the_next) {
  Primary primary;
  CUstream stream = check::stream();
  CUmemoryPool pool = makePool(poolOn(0));
  set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 128 << 20);
  EQUAL(attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 128u << 20);
  CUdeviceptr memory[8];
  for (auto& each : memory) each = take(pool, 32 << 20, stream);
  EQUAL(attribute(pool, kReserved), 256u << 20);
  for (auto& each : memory) OK(cuMemFreeAsync(each, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(attribute(pool, kReserved), 128u << 20);
  OK(cuMemPoolTrimTo(pool, 33 << 20));
  EQUAL(attribute(pool, kReserved), 64u << 20);
  OK(cuMemPoolTrimTo(pool, 100 << 20));
  EQUAL(attribute(pool, kReserved), 64u << 20);
  OK(cuMemPoolTrimTo(pool, 0));
  EQUAL(attribute(pool, kReserved), 0u);
  OK(cuMemPoolDestroy(pool));
}

TEST(freed_memory_is_used_again_in_stream_order) {
  Primary primary;
  CUstream stream = check::stream(), other = check::stream();
  CUmemoryPool pool = makePool(poolOn(0));
  CUdeviceptr first = take(pool, 4 << 20, stream);
  OK(shoalSimStreamDelay(stream, 20000000));
  OK(cuMemsetD8Async(first, 1, 4 << 20, stream));
  OK(cuMemFreeAsync(first, stream));
  // Another stream must not get the memory yet; the same stream may.
  CUdeviceptr elsewhere = take(pool, 4 << 20, other);
  CHECK(elsewhere != first);
  CUdeviceptr again = take(pool, 4 << 20, stream);
  CHECK(again == first);
  OK(cuMemsetD8Async(again, 2, 4 << 20, stream));
  EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  OK(cuStreamSynchronize(stream));
  EQUAL(byteAt(again), 2);
  EQUAL(attribute(pool, kUsed), 8u << 20);
  OK(cuMemFreeAsync(again, stream));
  OK(cuMemFreeAsync(elsewhere, other));
  OK(cuCtxSynchronize());
  EQUAL(attribute(pool, kUsed), 0u);
  EQUAL(attribute(pool, kReserved), 0u);
  OK(cuMemPoolDestroy(pool));
}

TEST(an_allocation_on_the_default_stream_comes_between_blocking_streams) {
  Primary primary;
  CUstream before = check::stream(0), after = check::stream(0);
  CUdeviceptr memory = check::memory(64), copy = check::memory(64), made = 0;
  OK(cuMemsetD8_v2(memory, 1, 64));
  OK(shoalSimStreamDelay(before, 50 * 1000 * 1000));
  OK(cuMemcpyDtoDAsync_v2(copy, memory, 64, before));
  OK(cuMemAllocAsync(&made, 64, nullptr));
  OK(cuMemsetD8Async(memory, 2, 64, after));
  OK(cuStreamSynchronize(after));
  EQUAL(byteAt(copy + 63), 1);
  EQUAL(byteAt(memory + 63), 2);
  OK(cuMemFreeAsync(made, nullptr));
  for (CUstream each : {before, after}) OK(cuStreamDestroy_v2(each));
  for (CUdeviceptr each : {memory, copy}) OK(cuMemFree_v2(each));
}

TEST(kernels_use_memory_that_is_freed_behind_them) {
  Primary primary;
  const char* ptx =
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry move(.param .u64 from, .param .u64 to) {\n .reg .b64 %d<3>; .reg .b32 %r<2>;\n"
      " ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to];\n ld.global.u32 %r1, [%d1+4096]; st.global.u32 [%d2], %r1; "
      "ret; }\n";
  CUmodule module = nullptr;
  CUfunction move = nullptr;
  OK(cuModuleLoadData(&module, ptx));
  OK(cuModuleGetFunction(&move, module, "move"));
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUmemoryPool pool = makePool(poolOn(0));
  CUdeviceptr results = 0;
  OK(cuMemAlloc_v2(&results, 3 * sizeof(unsigned)));
  // The stream's next allocation has the same address, but ends before the part that the kernel reads.
  for (unsigned round = 0; round < 3; ++round) {
    CUdeviceptr memory = take(pool, 8192, stream), to = results + round * sizeof(unsigned);
    OK(cuMemsetD8Async(memory, static_cast<unsigned char>(round + 1), 8192, stream));
    OK(shoalSimStreamDelay(stream, 20'000'000));
    void* parameters[] = {&memory, &to};
    OK(cuLaunchKernel(move, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
    OK(cuMemFreeAsync(memory, stream));
    CUdeviceptr next = take(pool, 512, stream);
    EQUAL(next, memory);
    OK(cuMemFreeAsync(next, stream));
    // New work cannot use it.
    EQUAL(cuMemsetD8Async(memory, 1, 1, stream), CUDA_ERROR_INVALID_VALUE);
  }
  OK(cuStreamSynchronize(stream));
  unsigned found[3] = {};
  OK(cuMemcpyDtoH_v2(found, results, sizeof found));
  for (unsigned round = 0; round < 3; ++round) EQUAL(found[round], 0x01010101u * (round + 1));
  // After the stream has reached the free, no work may use it.
  CUdeviceptr memory = take(pool, 8192, stream);
  OK(cuMemFreeAsync(memory, stream));
  OK(cuStreamSynchronize(stream));
  void* parameters[] = {&memory, &results};
  OK(cuLaunchKernel(move, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_stream_waits_for_memory_when_there_is_no_other) {
  Primary primary;
  CUstream stream = check::stream(), other = check::stream();
  CUmemPoolProps properties = poolOn(0);
  properties.maxSize = 4 << 20;
  CUmemoryPool pool = makePool(properties);
  CUdeviceptr first = take(pool, 4 << 20, stream), second = 0;
  EQUAL(cuMemAllocFromPoolAsync(&second, 4 << 20, pool, other), CUDA_ERROR_OUT_OF_MEMORY);
  OK(shoalSimStreamDelay(stream, 20000000));
  OK(cuMemsetD8Async(first, 1, 4 << 20, stream));
  OK(cuMemFreeAsync(first, stream));
  int no = 0, yes = 1;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no));
  EQUAL(cuMemAllocFromPoolAsync(&second, 4 << 20, pool, other), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &yes));
  second = take(pool, 4 << 20, other);
  CHECK(second == first);
  OK(cuMemsetD8Async(second, 2, 4 << 20, other));
  EQUAL(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
  OK(cuStreamSynchronize(other));
  OK(cuStreamQuery(stream));
  EQUAL(byteAt(second), 2);
  OK(cuMemFreeAsync(second, other));
  OK(cuCtxSynchronize());
  OK(cuMemPoolDestroy(pool));
}

TEST(a_destroyed_pool_lives_until_its_memory_is_freed) {
  Primary primary;
  CUstream stream = check::stream();
  const size_t before = freeBytes();
  CUmemoryPool pool = makePool(poolOn(0)), current = nullptr, byDefault = nullptr;
  OK(cuDeviceSetMemPool(0, pool));
  OK(cuDeviceGetMemPool(&current, 0));
  OK(cuDeviceGetDefaultMemPool(&byDefault, 0));
  CHECK(current == pool && byDefault != pool);
  CUdeviceptr memory = 0;
  OK(cuMemAllocAsync(&memory, 100, stream));
  CUmemoryPool seen = nullptr;
  OK(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
  CHECK(seen == pool);
  size_t mappingSize = 0;
  OK(cuPointerGetAttribute(&mappingSize, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, memory));
  EQUAL(mappingSize, 32u << 20);
  OK(cuMemPoolDestroy(pool));
  OK(cuDeviceGetMemPool(&current, 0));
  CHECK(current == byDefault);
  fill(memory, 1, 100);
  OK(cuMemFreeAsync(memory, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(freeBytes(), before);
  EQUAL(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolDestroy(byDefault), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolDestroy(nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolTrimTo(reinterpret_cast<CUmemoryPool>(0x1234567890), 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(unused_memory_of_pools_is_given_to_who_needs_it) {
  Primary primary;
  CUstream stream = check::stream();
  CUmemoryPool pool = makePool(poolOn(0));
  set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ~uint64_t{0});
  CUdeviceptr memory = take(pool, 900 << 20, stream);
  OK(cuMemFreeAsync(memory, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(attribute(pool, kReserved), 928u << 20);
  memory = check::memory(500 << 20);
  EQUAL(attribute(pool, kReserved), 0u);
  OK(cuMemFree_v2(memory));
  memory = take(pool, 900 << 20, stream);
  CUdeviceptr more = 0;
  EQUAL(cuMemAllocAsync(&more, 500 << 20, stream), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemFreeAsync(memory, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemPoolDestroy(pool));
}

TEST(pools_have_rights_for_each_device) {
  Primary primary;
  CUstream stream = check::stream();
  CUmemoryPool pool = makePool(poolOn(0));
  CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, there = {CU_MEM_LOCATION_TYPE_DEVICE, 1},
                nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 9};
  CUmemAccess_flags rights = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  OK(cuMemPoolGetAccess(&rights, pool, &here));
  EQUAL(rights, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemPoolGetAccess(&rights, pool, &there));
  EQUAL(rights, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EQUAL(cuMemPoolGetAccess(&rights, pool, &nowhere), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr memory = take(pool, 4096, stream);
  OK(cuStreamSynchronize(stream));
  CUmemAccessDesc access = {there, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  {
    Primary other(1);
    EQUAL(cuMemsetD8_v2(memory, 5, 16), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolSetAccess(pool, &access, 1));
    fill(memory, 5, 16);
  }
  EQUAL(byteAt(memory), 5);
  access = {here, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  EQUAL(cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_DEVICE);
  access = {there, CU_MEM_ACCESS_FLAGS_PROT_READ};
  EQUAL(cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_NOT_SUPPORTED);
  access = {nowhere, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EQUAL(cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_DEVICE);
  OK(cuMemPoolSetAccess(pool, &access, 0));
  EQUAL(cuMemPoolSetAccess(pool, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(memory, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemPoolDestroy(pool));
}

TEST(each_place_has_its_pool) {
  Primary primary;
  CUmemoryPool ofDevice = nullptr, ofHost = nullptr, current = nullptr;
  CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, host = {CU_MEM_LOCATION_TYPE_HOST, 0},
                other = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  OK(cuMemGetDefaultMemPool(&ofDevice, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
  OK(cuDeviceGetDefaultMemPool(&current, 0));
  CHECK(ofDevice == current);
  OK(cuMemGetDefaultMemPool(&ofHost, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
  CHECK(ofHost != ofDevice);
  CUstream stream = check::stream();
  const size_t before = freeBytes();
  CUdeviceptr memory = take(ofHost, 4096, stream);
  EQUAL(freeBytes(), before);
  OK(cuStreamSynchronize(stream));
  *reinterpret_cast<unsigned char*>(memory) = 11;
  unsigned char byte = 0;
  EQUAL(cuMemcpyDtoH_v2(&byte, memory, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(&byte), memory, 1));
  EQUAL(byte, 11);
  OK(cuMemFreeAsync(memory, stream));
  OK(cuStreamSynchronize(stream));
  CUmemoryPool pool = makePool(poolOn(1));
  EQUAL(cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_PINNED, pool), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemSetMemPool(&other, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
  OK(cuMemGetMemPool(&current, &other, CU_MEM_ALLOCATION_TYPE_PINNED));
  CHECK(current == pool);
  OK(cuMemPoolDestroy(pool));
  CUmemoryPool managed = nullptr;
  OK(cuMemGetMemPool(&managed, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
  CHECK(managed != ofDevice);
  EQUAL(cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_PINNED, managed), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuDeviceGetMemPool(&current, 9), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuDeviceGetDefaultMemPool(&current, 9), CUDA_ERROR_INVALID_DEVICE);
  EQUAL(cuDeviceGetMemPool(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(pools_of_managed_memory_are_everybodys) {
  Primary primary;
  CUstream stream = check::stream();
  for (auto place : {CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_NONE}) {
    CUmemPoolProps properties = poolOn(0);
    properties.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    properties.location.type = place;
    CUmemoryPool pool = makePool(properties);
    const CUdeviceptr memory = take(pool, 4096, stream);
    OK(cuMemsetD8Async(memory, 42, 4096, stream));
    OK(cuStreamSynchronize(stream));
    EQUAL(*reinterpret_cast<unsigned char*>(memory + 4095), 42);
    {
      Primary other(1);
      fill(memory, 43, 16);
    }
    unsigned isManaged = 0;
    OK(cuPointerGetAttribute(&isManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
    EQUAL(isManaged, 1u);
    OK(cuMemFreeAsync(memory, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemPoolDestroy(pool));
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    EQUAL(cuMemPoolCreate(&pool, &properties), CUDA_ERROR_INVALID_VALUE);
  }
}

// Without a fabric, only the export fails.
TEST(a_pool_for_the_fabric_needs_one_to_be_exported) {
  Primary primary;
  CUmemoryPool pool = makePool(poolOn(0, CU_MEM_HANDLE_TYPE_FABRIC));
  CUmemFabricHandle handle;
  EQUAL(cuMemPoolExportToShareableHandle(&handle, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_NOT_PERMITTED);
  OK(cuMemPoolDestroy(pool));
}

TEST(wrong_pools_are_refused) {
  Primary primary;
  CUmemoryPool pool = nullptr;
  auto refused = [&](CUresult want, const CUmemPoolProps& properties) {
    EQUAL(cuMemPoolCreate(&pool, &properties), want);
  };
  auto properties = poolOn(9);
  refused(CUDA_ERROR_INVALID_VALUE, properties);
  properties = poolOn(0);
  properties.allocType = static_cast<CUmemAllocationType>(0);
  refused(CUDA_ERROR_INVALID_VALUE, properties);
  properties = poolOn(0);
  properties.reserved[3] = 1;
  refused(CUDA_ERROR_INVALID_VALUE, properties);
  refused(CUDA_ERROR_INVALID_VALUE, poolOn(0, CU_MEM_HANDLE_TYPE_WIN32));
  refused(CUDA_ERROR_INVALID_VALUE, poolOn(0, 64));
  properties = poolOn(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST;
  refused(CUDA_ERROR_INVALID_VALUE, properties);
  EQUAL(cuMemPoolCreate(nullptr, &properties), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolCreate(&pool, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr memory = 0;
  EQUAL(cuMemAllocFromPoolAsync(&memory, 16, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAllocFromPoolAsync(&memory, ~size_t{0}, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  pool = makePool(poolOn(0));
  EQUAL(cuMemAllocFromPoolAsync(&memory, ~size_t{0}, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  int descriptor = -1;
  EQUAL(cuMemPoolExportToShareableHandle(&descriptor, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);
  CUmemPoolPtrExportData data = {};
  memory = take(pool, 64, nullptr);
  EQUAL(cuMemPoolExportPointer(&data, memory), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolImportPointer(&memory, pool, &data), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(memory));
  CUmemoryPool imported = nullptr;
  EQUAL(cuMemPoolImportFromShareableHandle(&imported, reinterpret_cast<void*>(uintptr_t{1}),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_UNKNOWN);
  // A descriptor of physical memory is not a pool, and a pool's is not physical memory.
  const auto handle = create(kPiece, onDevice(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  OK(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  EQUAL(cuMemPoolImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_NOT_SUPPORTED);
  close(descriptor);
  OK(cuMemRelease(handle));
  OK(cuMemPoolDestroy(pool));
}

TEST(another_process_imports_a_pool_and_a_pointer) {
  for (const bool isKilled : {false, true}) {
    process::Child child("use imported");
    Primary primary;
    CUmemoryPool pool = makePool(poolOn(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    int descriptor = -1;
    OK(cuMemPoolExportToShareableHandle(&descriptor, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    take(pool, 10000, nullptr);  // so that the next pointer is not at the pool's start
    CUdeviceptr memory = take(pool, 5000, nullptr);
    fill(memory, 42, 5000);
    CUmemPoolPtrExportData data = {};
    OK(cuMemPoolExportPointer(&data, memory));
    EQUAL(cuMemPoolExportPointer(&data, memory + 1), CUDA_ERROR_INVALID_VALUE);
    child.sendDescriptor(descriptor);
    close(descriptor);
    child.send(data);
    child.receive<int>();
    EQUAL(byteAt(memory + 99), 43);
    EQUAL(byteAt(memory + 100), 42);
    if (isKilled) {
      child.kill();
    } else {
      child.send(1);
      EQUAL(child.wait(), 0);
    }
    EQUAL(byteAt(memory), 43);
    OK(cuMemPoolDestroy(pool));
  }
}
