// Memory: allocation, accounting, copies, fills, pointers. A wrong range is always an error and never a crash.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "check.h"

using check::Primary;

namespace {

std::vector<unsigned char> noise(size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> data(bytes);
  for (auto& byte : data) byte = static_cast<unsigned char>(random());
  return data;
}

CUdeviceptr address(void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace

TEST(memory_is_counted_and_runs_out) {
  Primary primary;
  size_t free = 0, total = 0, before = 0;
  OK(cuMemGetInfo_v2(&before, &total));
  EQUAL(total, size_t{1} << 30);
  CUdeviceptr memory = check::memory(100 << 20);
  OK(cuMemGetInfo_v2(&free, &total));
  EQUAL(before - free, 100u << 20);
  CUdeviceptr more = 0;
  EQUAL(cuMemAlloc_v2(&more, 950 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  EQUAL(cuMemAlloc_v2(&more, ~size_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
  EQUAL(cuMemAlloc_v2(&more, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAlloc_v2(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(memory));
  OK(cuMemGetInfo_v2(&free, &total));
  EQUAL(free, before);
  OK(cuMemAlloc_v2(&more, 950 << 20));
  OK(cuMemFree_v2(more));
}

TEST(pieces_of_memory_are_used_again) {
  Primary primary;
  std::mt19937 random(7);
  std::vector<std::pair<CUdeviceptr, size_t>> live;
  for (int round = 0; round < 2000; ++round) {
    if (live.size() > 40 || (!live.empty() && random() % 2 == 0)) {
      const size_t index = random() % live.size();
      OK(cuMemFree_v2(live[index].first));
      live.erase(live.begin() + static_cast<long>(index));
    } else {
      const size_t bytes = 1 + random() % (8 << 20);
      const CUdeviceptr memory = check::memory(bytes);
      EQUAL(memory % 256, 0);
      for (auto& other : live) CHECK(memory + bytes <= other.first || other.first + other.second <= memory);
      live.push_back({memory, bytes});
    }
  }
  for (auto& each : live) OK(cuMemFree_v2(each.first));
  size_t free = 0, total = 0;
  OK(cuMemGetInfo_v2(&free, &total));
  EQUAL(free, total);
}

TEST(copies_go_everywhere_and_back) {
  Primary one(0);
  CUdeviceptr first = check::memory(100003), second = 0;
  const auto data = noise(100003, 1);
  std::vector<unsigned char> back(data.size());
  OK(cuMemcpyHtoD_v2(first, data.data(), data.size()));
  {
    Primary two(1);
    second = check::memory(100003);
    OK(cuMemcpyPeer(second, two.context, first, one.context, data.size()));
    OK(cuMemcpyDtoH_v2(back.data(), second, back.size()));
    CHECK(back == data);
    CUdeviceptr third = check::memory(100003);
    OK(cuMemcpyDtoD_v2(third + 3, second + 3, 1000));
    OK(cuMemcpy(address(back.data()), third + 3, 1000));
    CHECK(std::equal(back.begin(), back.begin() + 1000, data.begin() + 3));
    CUstream stream = check::stream();
    OK(cuMemcpyPeerAsync(third, two.context, first, one.context, data.size(), stream));
    OK(cuMemcpyDtoHAsync_v2(back.data(), third, back.size(), stream));
    OK(cuStreamSynchronize(stream));
    CHECK(back == data);
  }
  OK(cuMemFree_v2(first));
}

TEST(a_peer_copy_without_a_stream_waits_for_the_work_of_both_contexts) {
  Primary one(0);
  const CUdeviceptr here = check::memory(64);
  unsigned char byte = 0;
  {
    Primary two(1);
    const CUdeviceptr there = check::memory(64);
    // Delayed work on the other device writes the source.
    OK(shoalSimStreamDelay(nullptr, 50000000));
    OK(cuMemsetD8Async(there, 7, 64, nullptr));
    OK(cuCtxPushCurrent_v2(one.context));
    OK(cuMemcpyPeer(here, one.context, there, two.context, 64));
    OK(cuMemcpyDtoH_v2(&byte, here, 1));
    EQUAL(byte, 7);
    CUcontext popped = nullptr;
    OK(cuCtxPopCurrent_v2(&popped));
    // Delayed work on the other device reads the target before the copy overwrites it.
    OK(shoalSimStreamDelay(nullptr, 50000000));
    OK(cuMemsetD8Async(there, 9, 64, nullptr));
    OK(cuCtxPushCurrent_v2(one.context));
    OK(cuMemcpyPeer(there, two.context, here, one.context, 64));
    OK(cuCtxSynchronize());
    OK(cuCtxPopCurrent_v2(&popped));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(&byte, there, 1));
    EQUAL(byte, 7);
  }
  OK(cuMemFree_v2(here));
}

TEST(an_asynchronous_copy_takes_pageable_memory_at_once) {
  Primary primary;
  CUstream stream = check::stream();
  CUdeviceptr memory = check::memory(4096);
  auto data = noise(4096, 2);
  const auto kept = data;
  OK(shoalSimStreamDelay(stream, 20000000));
  OK(cuMemcpyHtoDAsync_v2(memory, data.data(), data.size(), stream));
  EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  std::fill(data.begin(), data.end(), static_cast<unsigned char>(0));
  // A copy to pageable memory returns after it has completed.
  OK(cuMemcpyDtoHAsync_v2(data.data(), memory, data.size(), stream));
  OK(cuStreamQuery(stream));
  CHECK(data == kept);
}

TEST(an_asynchronous_copy_from_pinned_memory_reads_it_later) {
  Primary primary;
  CUstream stream = check::stream();
  CUdeviceptr memory = check::memory(4096);
  void* pinned = nullptr;
  OK(cuMemHostAlloc(&pinned, 4096, 0));
  memset(pinned, 1, 4096);
  OK(shoalSimStreamDelay(stream, 20000000));
  OK(cuMemcpyHtoDAsync_v2(memory, pinned, 4096, stream));
  memset(pinned, 2, 4096);
  // Freeing the memory waits for the copy.
  OK(cuMemFreeHost(pinned));
  OK(cuStreamQuery(stream));
  std::vector<unsigned char> back(4096);
  OK(cuMemcpyDtoH_v2(back.data(), memory, 4096));
  CHECK(back[0] == 2 && back[4095] == 2);
}

TEST(wrong_ranges_are_refused) {
  Primary primary;
  CUdeviceptr memory = check::memory(1024), freed = check::memory(1024);
  OK(cuMemFree_v2(freed));
  std::vector<char> host(8192);
  EQUAL(cuMemcpyHtoD_v2(memory, host.data(), 1025), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyHtoD_v2(memory + 1, host.data(), 1024), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyDtoH_v2(host.data(), memory, 1025), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyDtoD_v2(memory, memory + 512, 513), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyHtoD_v2(freed, host.data(), 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyHtoD_v2(0, host.data(), 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyHtoD_v2(64, host.data(), 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyHtoD_v2(address(host.data()), host.data(), 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyHtoD_v2(memory, nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyHtoD_v2(memory, reinterpret_cast<void*>(64), 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyDtoH_v2(reinterpret_cast<void*>(64), memory, 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyHtoD_v2(memory, host.data(), ~size_t{0}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemsetD8_v2(memory, 0, 1025), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemsetD32_v2(memory, 0, size_t{1} << 62), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemsetD16_v2(memory + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFree_v2(memory + 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFree_v2(freed), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFree_v2(address(host.data())), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFreeHost(host.data()), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(0));
  OK(cuMemcpyHtoD_v2(memory, host.data(), 0));
  OK(cuMemFree_v2(memory));
}

TEST(host_memory_that_cannot_be_touched_is_refused) {
  Primary primary;
  CUdeviceptr memory = check::memory(8192);
  auto* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(pages + 4096, 4096, PROT_NONE);
  EQUAL(cuMemcpyHtoD_v2(memory, pages, 8192), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyDtoH_v2(pages, memory, 8192), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemcpyDtoH_v2(pages, memory, 4096));
  mprotect(pages, 8192, PROT_READ);
  OK(cuMemcpyHtoD_v2(memory, pages, 8192));
  EQUAL(cuMemcpyDtoH_v2(pages, memory, 8192), CUDA_ERROR_INVALID_VALUE);
  munmap(pages, 8192);
  EQUAL(cuMemcpyHtoD_v2(memory, pages, 8192), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(memory));
}

TEST(stream_ordered_memory_lives_in_stream_order) {
  Primary primary;
  CUstream stream = check::stream();
  CUdeviceptr memory = 0;
  size_t before = 0, after = 0, total = 0;
  OK(cuMemGetInfo_v2(&before, &total));
  OK(shoalSimStreamDelay(stream, 20000000));
  OK(cuMemAllocAsync(&memory, 1 << 20, stream));
  OK(cuMemsetD8Async(memory, 5, 1 << 20, stream));
  OK(cuMemFreeAsync(memory, stream));
  EQUAL(cuMemsetD8Async(memory, 5, 16, stream), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemGetInfo_v2(&after, &total));
  EQUAL(before - after, 32u << 20);  // the segment that the pool reserved
  OK(cuStreamSynchronize(stream));
  OK(cuMemGetInfo_v2(&after, &total));
  EQUAL(before, after);
}

TEST(fills_of_all_widths) {
  Primary primary;
  CUdeviceptr memory = check::memory(4096);
  std::vector<unsigned char> bytes(4096), want(4096, 0);
  OK(cuMemsetD8_v2(memory, 0, 4096));
  OK(cuMemsetD8_v2(memory + 1, 0xab, 3));
  OK(cuMemsetD16_v2(memory + 10, 0x1234, 5));
  OK(cuMemsetD32_v2(memory + 100, 0xdeadbeef, 7));
  OK(cuMemsetD2D8_v2(memory + 1000, 100, 7, 10, 3));
  OK(cuMemsetD2D16_v2(memory + 2000, 64, 0x0102, 3, 4));
  OK(cuMemsetD2D32_v2(memory + 3000, 64, 0x01020304, 3, 4));
  memset(&want[1], 0xab, 3);
  for (int i = 0; i < 5; ++i) want[10 + 2 * i] = 0x34, want[11 + 2 * i] = 0x12;
  const unsigned char beef[] = {0xef, 0xbe, 0xad, 0xde};
  for (int i = 0; i < 7; ++i) memcpy(&want[100 + 4 * i], beef, 4);
  for (int row = 0; row < 3; ++row) memset(&want[1000 + 100 * row], 7, 10);
  for (int row = 0; row < 4; ++row) {
    for (int i = 0; i < 3; ++i) want[2000 + 64 * row + 2 * i] = 2, want[2001 + 64 * row + 2 * i] = 1;
    for (int i = 0; i < 3; ++i) {
      for (int byte = 0; byte < 4; ++byte) want[3000 + 64 * row + 4 * i + byte] = static_cast<unsigned char>(4 - byte);
    }
  }
  OK(cuMemcpyDtoH_v2(bytes.data(), memory, 4096));
  CHECK(bytes == want);
  CUstream stream = check::stream();
  OK(cuMemsetD32Async(memory, 0, 1024, stream));
  OK(cuMemsetD2D8Async(memory, 64, 1, 64, 64, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemcpyDtoH_v2(bytes.data(), memory, 4096));
  CHECK(std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 1; }));
  EQUAL(cuMemsetD2D8_v2(memory, 8, 1, 16, 4), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemsetD2D8_v2(memory, 2048, 1, 16, 4), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(memory));
}

TEST(two_dimensional_copies) {
  Primary primary;
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  OK(cuMemAllocPitch_v2(&memory, &pitch, 100, 20, 4));
  EQUAL(pitch, 512);
  const auto data = noise(100 * 20, 3);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = data.data();
  copy.srcPitch = 100;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 100;
  copy.Height = 20;
  OK(cuMemcpy2D_v2(&copy));
  std::vector<unsigned char> back(30 * 5);
  CUDA_MEMCPY2D part = {};
  part.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  part.srcDevice = memory;
  part.srcPitch = pitch;
  part.srcXInBytes = 7;
  part.srcY = 3;
  part.dstMemoryType = CU_MEMORYTYPE_HOST;
  part.dstHost = back.data();
  part.dstPitch = 30;
  part.WidthInBytes = 30;
  part.Height = 5;
  for (int form = 0; form < 3; ++form) {
    std::fill(back.begin(), back.end(), static_cast<unsigned char>(0));
    OK(form == 0   ? cuMemcpy2D_v2(&part)
       : form == 1 ? cuMemcpy2DUnaligned_v2(&part)
                   : cuMemcpy2DAsync_v2(&part, nullptr));
    for (size_t row = 0; row < 5; ++row) CHECK(memcmp(&back[row * 30], &data[(row + 3) * 100 + 7], 30) == 0);
  }
  part.srcY = 16;
  EQUAL(cuMemcpy2D_v2(&part), CUDA_ERROR_INVALID_VALUE);
  part.srcY = 0;
  part.dstPitch = 29;
  EQUAL(cuMemcpy2D_v2(&part), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpy2D_v2(nullptr), CUDA_ERROR_INVALID_VALUE);
  part.dstPitch = 30;
  part.srcY = ~size_t{0};
  EQUAL(cuMemcpy2D_v2(&part), CUDA_ERROR_INVALID_VALUE);
}

TEST(host_memory_is_pinned_and_registered) {
  Primary primary;
  void* pinned = nullptr;
  CUdeviceptr seen = 0;
  unsigned flags = 0;
  OK(cuMemHostAlloc(&pinned, 5000, CU_MEMHOSTALLOC_WRITECOMBINED));
  OK(cuMemHostGetDevicePointer_v2(&seen, pinned, 0));
  CHECK(seen == address(pinned));
  OK(cuMemHostGetFlags(&flags, pinned));
  CHECK((flags & CU_MEMHOSTALLOC_WRITECOMBINED) != 0);
  OK(cuMemsetD8_v2(seen, 9, 5000));
  CHECK(static_cast<char*>(pinned)[4999] == 9);
  CUdeviceptr memory = check::memory(8192);
  EQUAL(cuMemcpyHtoD_v2(memory, static_cast<char*>(pinned) + 4000, 1001), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeHost(pinned));
  EQUAL(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
  void* page = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  OK(cuMemHostRegister_v2(page, 8192, 0));
  EQUAL(cuMemHostRegister_v2(page, 8192, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  OK(cuMemHostGetDevicePointer_v2(&seen, page, 0));
  OK(cuMemHostUnregister(page));
  EQUAL(cuMemHostUnregister(page), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  munmap(page, 8192);
  OK(cuMemFree_v2(memory));
}

TEST(managed_memory_is_shared_with_the_host) {
  Primary primary;
  CUdeviceptr managed = 0;
  EQUAL(cuMemAllocManaged(&managed, 4096, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  auto* words = reinterpret_cast<unsigned*>(managed);
  words[3] = 17;
  OK(cuMemsetD32_v2(managed + 16, 42, 1));
  OK(cuCtxSynchronize());
  EQUAL(words[3], 17);
  EQUAL(words[4], 42);
  unsigned isManaged = 0;
  OK(cuPointerGetAttribute(&isManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  EQUAL(isManaged, 1);
  OK(cuMemFree_v2(managed));
}

TEST(pointers_tell_what_they_point_to) {
  Primary one(0);
  Primary two(1);
  CUdeviceptr memory = check::memory(1000), base = 0;
  size_t size = 0;
  unsigned type = 0;
  int ordinal = -1;
  CUcontext context = nullptr;
  OK(cuMemGetAddressRange_v2(&base, &size, memory + 999));
  CHECK(base == memory);
  EQUAL(size, 1000);
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 5));
  EQUAL(type, CU_MEMORYTYPE_DEVICE);
  OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
  EQUAL(ordinal, 1);
  OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
  CHECK(context == two.context);
  char plain[16];
  EQUAL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(plain)), CUDA_ERROR_INVALID_VALUE);
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* out[] = {&type, &size};
  OK(cuPointerGetAttributes(2, wanted, out, address(plain)));
  EQUAL(type, 0);
  EQUAL(size, 0);
  unsigned long long first = 0, second = 0;
  OK(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
  OK(cuMemFree_v2(memory));
  memory = check::memory(1000);
  OK(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
  CHECK(first != second);
  OK(cuMemFree_v2(memory));
}

TEST(freeing_waits_for_queued_work) {
  Primary primary;
  CUstream stream = check::stream();
  CUdeviceptr memory = check::memory(1 << 20);
  const auto start = std::chrono::steady_clock::now();
  OK(shoalSimStreamDelay(stream, 30000000));
  OK(cuMemsetD8Async(memory, 1, 1 << 20, stream));
  OK(cuMemFree_v2(memory));
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(30));
}
