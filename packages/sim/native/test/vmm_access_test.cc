// Access to mapped memory: rights of devices, queued work, and mappings that are removed in the meantime.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "mapped.h"

using check::Primary;
using namespace mapped;

TEST(each_device_has_its_own_rights) {
  Primary primary;
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 2 * kPiece, 0, 0, 0));
  const auto handle = create(2 * kPiece, onDevice(0));
  OK(cuMemMap(range, 2 * kPiece, 0, handle, 0));
  unsigned long long rights = 9;
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, there = {CU_MEM_LOCATION_TYPE_DEVICE, 1},
                      nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 7};
  OK(cuMemGetAccess(&rights, &here, range));
  EQUAL(rights, 0u);
  EQUAL(cuMemsetD8_v2(range, 1, 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(mapped::use(range, 1), CUDA_ERROR_INVALID_VALUE);
  mapped::allow(range, 2 * kPiece, 0);
  fill(range, 6, 2 * kPiece);
  OK(cuMemGetAccess(&rights, &here, range + kPiece));
  EQUAL(rights, 3u);
  OK(cuMemGetAccess(&rights, &there, range));
  EQUAL(rights, 0u);
  unsigned char byte = 0;
  {
    Primary other(1);
    EQUAL(cuMemcpyDtoH_v2(&byte, range, 1), CUDA_ERROR_INVALID_VALUE);
    mapped::allow(range, 2 * kPiece, 1, CU_MEM_ACCESS_FLAGS_PROT_READ);
    OK(cuMemcpyDtoH_v2(&byte, range, 1));
    EQUAL(byte, 6);
    EQUAL(cuMemsetD8_v2(range, 1, 16), CUDA_ERROR_INVALID_VALUE);
    EQUAL(cuMemcpyHtoD_v2(range, &byte, 1), CUDA_ERROR_INVALID_VALUE);
    EQUAL(cuStreamWriteValue32_v2(nullptr, range, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamWaitValue32_v2(nullptr, range, 0, CU_STREAM_WAIT_VALUE_GEQ));
  }
  // The rights are removed again.
  mapped::allow(range, 2 * kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EQUAL(cuMemcpyDtoH_v2(&byte, range, 1), CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc wrong = {here, static_cast<CUmemAccess_flags>(2)};
  EQUAL(cuMemSetAccess(range, 2 * kPiece, &wrong, 1), CUDA_ERROR_INVALID_VALUE);
  wrong = {nowhere, CU_MEM_ACCESS_FLAGS_PROT_READ};
  EQUAL(cuMemSetAccess(range, 2 * kPiece, &wrong, 1), CUDA_ERROR_INVALID_VALUE);
  wrong = {{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
  EQUAL(cuMemSetAccess(range, 2 * kPiece, &wrong, 1), CUDA_ERROR_NOT_SUPPORTED);
  wrong = {here, CU_MEM_ACCESS_FLAGS_PROT_READ};
  EQUAL(cuMemSetAccess(range, kPiece, &wrong, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemSetAccess(range + kPiece, kPiece, &wrong, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemSetAccess(range, 2 * kPiece, &wrong, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemSetAccess(range, 2 * kPiece, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemGetAccess(&rights, &nowhere, range), CUDA_ERROR_INVALID_DEVICE);
  EQUAL(cuMemGetAccess(&rights, &here, range + 2 * kPiece), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemGetAccess(nullptr, &here, range), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemUnmap(range, 2 * kPiece));
  OK(cuMemRelease(handle));
  OK(cuMemAddressFree(range, 2 * kPiece));
}

TEST(pages_are_protected_from_the_program_too) {
  Primary primary;
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
  mapped::grow(range, kPiece, 0);
  auto dies = [&](bool isWrite) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGSEGV, SIG_DFL);  // sanitizers would report the expected fault
      signal(SIGBUS, SIG_DFL);
      auto* word = reinterpret_cast<volatile int*>(range);
      if (isWrite) *word = 1;
      _exit(*word >= 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  };
  CHECK(!dies(true));
  mapped::allow(range, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
  CHECK(!dies(false));
  CHECK(dies(true));
  mapped::allow(range, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  CHECK(dies(false));
  OK(cuMemUnmap(range, kPiece));
  OK(cuMemAddressFree(range, kPiece));
}

TEST(queued_work_fails_where_its_memory_was_taken_away) {
  enum class Taken { memory, rights, writing };
  for (const Taken taken : {Taken::memory, Taken::rights, Taken::writing}) {
    // A separate context, because it is unusable afterwards.
    CUcontext context = nullptr;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    CUstream stream = check::stream();
    CUdeviceptr range = 0;
    OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
    mapped::grow(range, kPiece, 0);
    OK(shoalSimStreamDelay(stream, 20000000));
    OK(cuMemsetD8Async(range, 1, kPiece, stream));
    // Unmapping does not wait for work that has not started.
    if (taken == Taken::memory) OK(cuMemUnmap(range, kPiece));
    if (taken == Taken::rights) mapped::allow(range, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    if (taken == Taken::writing) mapped::allow(range, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
    EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EQUAL(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxDestroy_v2(context));
    OK(cuMemUnmap(range, kPiece));
    OK(cuMemAddressFree(range, kPiece));
  }
}

TEST(queued_work_finds_the_memory_that_is_there_then) {
  Primary primary;
  CUstream stream = check::stream();
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 2 * kPiece, 0, 0, 0));
  mapped::grow(range, 2 * kPiece, 0);
  OK(shoalSimStreamDelay(stream, 20000000));
  OK(cuMemsetD8Async(range, 1, 2 * kPiece, stream));
  OK(cuMemUnmap(range, 2 * kPiece));
  mapped::grow(range, kPiece, 0);
  mapped::grow(range + kPiece, kPiece, 0);
  OK(cuStreamSynchronize(stream));
  EQUAL(byteAt(range + 2 * kPiece - 1), 1);
  OK(cuMemUnmap(range, 2 * kPiece));
  OK(cuMemAddressFree(range, 2 * kPiece));
}

// Running work must not lose its memory.
TEST(memory_is_taken_away_between_operations) {
  for (int round = 0; round < 20; ++round) {
    CUcontext context = nullptr;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    CUstream stream = check::stream();
    CUdeviceptr range = 0;
    constexpr size_t size = 16 * kPiece;
    OK(cuMemAddressReserve(&range, size, 0, 0, 0));
    mapped::grow(range, size, 0);
    for (int fills = 0; fills < 4; ++fills) OK(cuMemsetD8Async(range, 1, size, stream));
    OK(cuStreamWaitValue32_v2(stream, range, 2, CU_STREAM_WAIT_VALUE_EQ));  // never satisfied
    usleep(static_cast<useconds_t>(round) * 1000);
    if (round % 2 == 0) OK(cuMemUnmap(range, size));
    else mapped::allow(range, size, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxDestroy_v2(context));
    OK(cuMemUnmap(range, size));
    OK(cuMemAddressFree(range, size));
  }
}

TEST(threads_map_and_unmap_side_by_side) {
  Primary primary;
  const size_t before = freeBytes();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      cuCtxSetCurrent(primary.context);
      std::mt19937 random(static_cast<unsigned>(number));
      CUdeviceptr range = 0;
      if (cuMemAddressReserve(&range, 8 * kPiece, 0, 0, 0) != CUDA_SUCCESS) ++wrong;
      for (int round = 0; round < 100; ++round) {
        const size_t size = (1 + random() % 8) * kPiece;
        mapped::grow(range, size, 0);
        if (cuMemsetD8_v2(range + size - 4096, static_cast<unsigned char>(number), 4096) != CUDA_SUCCESS) ++wrong;
        unsigned char byte = 99;
        if (cuMemcpyDtoH_v2(&byte, range + size - 1 - random() % 4096, 1) != CUDA_SUCCESS || byte != number) ++wrong;
        if (cuMemUnmap(range, size) != CUDA_SUCCESS) ++wrong;
      }
      if (cuMemAddressFree(range, 8 * kPiece) != CUDA_SUCCESS) ++wrong;
    });
  }
  for (auto& thread : threads) thread.join();
  EQUAL(wrong.load(), 0);
  EQUAL(freeBytes(), before);
}
