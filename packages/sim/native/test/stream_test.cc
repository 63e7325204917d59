// Streams: order within a stream, overlap between streams, default streams, host functions, waiting.
#include <atomic>
#include <chrono>
#include <thread>

#include "check.h"

using check::Primary;

namespace {
constexpr uint64_t kMillisecond = 1000000;

double milliseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since).count();
}
}  // namespace

TEST(work_of_one_stream_keeps_its_order) {
  Primary primary;
  CUstream stream = check::stream();
  static std::vector<int> seen;
  seen.clear();
  static int numbers[200];
  for (int index = 0; index < 200; ++index) {
    numbers[index] = index;
    OK(cuLaunchHostFunc(stream, [](void* number) { seen.push_back(*static_cast<int*>(number)); }, &numbers[index]));
  }
  OK(cuStreamSynchronize(stream));
  EQUAL(seen.size(), 200);
  for (int index = 0; index < 200; ++index) EQUAL(seen[static_cast<size_t>(index)], index);
  OK(cuStreamDestroy_v2(stream));
}

TEST(different_streams_overlap) {
  Primary primary;
  CUstream streams[4];
  const auto start = std::chrono::steady_clock::now();
  for (auto& stream : streams) {
    stream = check::stream();
    OK(shoalSimStreamDelay(stream, 250 * kMillisecond));
  }
  for (auto& stream : streams) EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  for (auto& stream : streams) OK(cuStreamSynchronize(stream));
  const double took = milliseconds(start);
  CHECK(took >= 250 && took < 900);
  for (auto& stream : streams) OK(cuStreamQuery(stream));
  for (auto& stream : streams) OK(cuStreamDestroy_v2(stream));
}

TEST(the_default_stream_waits_for_blocking_streams_and_they_for_it) {
  Primary primary;
  CUstream blocking = check::stream(CU_STREAM_DEFAULT), free = check::stream();
  static std::atomic<int> step;
  step = 0;
  OK(shoalSimStreamDelay(blocking, 50 * kMillisecond));
  OK(cuLaunchHostFunc(
      blocking,
      [](void*) {
        if (step == 0) step = 1;
      },
      nullptr));
  OK(cuLaunchHostFunc(
      nullptr,
      [](void*) {
        if (step == 1) step = 2;
      },
      nullptr));
  OK(cuLaunchHostFunc(
      blocking,
      [](void*) {
        if (step == 2) step = 3;
      },
      nullptr));
  static std::atomic<bool> isFree;
  isFree = false;
  OK(cuLaunchHostFunc(free, [](void*) { isFree = step == 0; }, nullptr));
  OK(cuStreamSynchronize(free));
  CHECK(isFree);
  EQUAL(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  OK(cuStreamSynchronize(blocking));
  EQUAL(step.load(), 3);
  OK(cuStreamQuery(nullptr));
  // A copy without a stream uses the default stream.
  CUdeviceptr memory = check::memory(4);
  OK(shoalSimStreamDelay(blocking, 30 * kMillisecond));
  OK(cuMemsetD32Async(memory, 7, 1, blocking));
  unsigned value = 0;
  OK(cuMemcpyDtoH_v2(&value, memory, 4));
  EQUAL(value, 7);
  OK(cuMemFree_v2(memory));
  OK(cuStreamDestroy_v2(blocking));
  OK(cuStreamDestroy_v2(free));
}

TEST(each_thread_has_a_default_stream_of_its_own) {
  Primary primary;
  OK(shoalSimStreamDelay(CU_STREAM_PER_THREAD, 60 * kMillisecond));
  EQUAL(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  EQUAL(cuStreamQuery_ptsz(nullptr), CUDA_ERROR_NOT_READY);
  unsigned long long mine = 0, theirs = 0;
  OK(cuStreamGetId_ptsz(nullptr, &mine));
  std::thread([&] {
    OK(cuCtxSetCurrent(primary.context));
    OK(cuStreamQuery_ptsz(nullptr));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &theirs));
  }).join();
  CHECK(mine != theirs);
  // The legacy default stream is ordered after the blocking stream.
  EQUAL(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  OK(cuStreamSynchronize(nullptr));
  OK(cuStreamQuery_ptsz(nullptr));
}

TEST(a_destroyed_stream_finishes_its_work) {
  Primary primary;
  CUstream stream = check::stream();
  static std::atomic<bool> ran;
  ran = false;
  OK(shoalSimStreamDelay(stream, 20 * kMillisecond));
  OK(cuLaunchHostFunc(stream, [](void*) { ran = true; }, nullptr));
  OK(cuStreamDestroy_v2(stream));
  EQUAL(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  OK(cuCtxSynchronize());
  CHECK(ran);
}

TEST(streams_tell_what_they_are) {
  Primary primary;
  CUstream stream = nullptr;
  int priority = 1;
  unsigned flags = 9;
  CUcontext context = nullptr;
  CUdevice device = -1;
  OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
  OK(cuStreamGetPriority(stream, &priority));
  EQUAL(priority, -5);
  OK(cuStreamGetFlags(stream, &flags));
  EQUAL(flags, CU_STREAM_NON_BLOCKING);
  OK(cuStreamGetCtx(stream, &context));
  CHECK(context == primary.context);
  OK(cuStreamGetDevice(stream, &device));
  EQUAL(device, 0);
  EQUAL(cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
  CUstreamCaptureStatus capture = static_cast<CUstreamCaptureStatus>(9);
  OK(cuStreamIsCapturing(stream, &capture));
  EQUAL(capture, CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cuStreamDestroy_v2(stream));
}

TEST(host_functions_may_hardly_call_cuda) {
  Primary primary;
  CUstream stream = check::stream();
  static CUresult answers[3], query, record;
  static CUevent event;
  event = check::event();
  OK(cuLaunchHostFunc(
      stream,
      [](void* own) {
        CUdeviceptr memory = 0;
        answers[0] = cuMemAlloc_v2(&memory, 16);
        answers[1] = cuStreamSynchronize(nullptr);
        answers[2] = cuCtxSynchronize();
        // Hardware allows these two calls in a host function.
        query = cuStreamQuery(static_cast<CUstream>(own));
        record = cuEventRecord(event, static_cast<CUstream>(own));
      },
      stream));
  OK(cuStreamSynchronize(stream));
  for (auto answer : answers) EQUAL(answer, CUDA_ERROR_NOT_PERMITTED);
  EQUAL(query, CUDA_ERROR_NOT_READY);
  EQUAL(record, CUDA_SUCCESS);
  OK(cuEventSynchronize(event));
  OK(cuStreamDestroy_v2(stream));
}

TEST(callbacks_are_told_the_status) {
  Primary primary;
  CUstream stream = check::stream();
  static CUstream seen;
  static CUresult status;
  status = CUDA_ERROR_UNKNOWN;
  OK(cuStreamAddCallback(
      stream,
      [](CUstream which, CUresult result, void*) {
        seen = which;
        status = result;
      },
      nullptr, 0));
  OK(cuStreamSynchronize(stream));
  CHECK(seen == stream);
  EQUAL(status, CUDA_SUCCESS);
  EQUAL(cuStreamAddCallback(stream, nullptr, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamDestroy_v2(stream));
}

TEST(streams_wait_for_and_write_words) {
  Primary primary;
  CUstream writer = check::stream(), waiter = check::stream();
  CUdeviceptr words = check::memory(64);
  OK(cuMemsetD8_v2(words, 0, 64));
  OK(cuStreamWaitValue32_v2(waiter, words, 5, CU_STREAM_WAIT_VALUE_GEQ));
  OK(cuStreamWaitValue64_v2(waiter, words + 8, 0x10, CU_STREAM_WAIT_VALUE_AND));
  OK(cuStreamWriteValue32_v2(waiter, words + 16, 9, 0));
  EQUAL(cuStreamQuery(waiter), CUDA_ERROR_NOT_READY);
  OK(cuStreamWriteValue32_v2(writer, words, 6, 0));
  OK(cuStreamSynchronize(writer));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EQUAL(cuStreamQuery(waiter), CUDA_ERROR_NOT_READY);
  OK(cuStreamWriteValue64_v2(writer, words + 8, 0xff, 0));
  OK(cuStreamSynchronize(waiter));
  unsigned value = 0;
  OK(cuMemcpyDtoH_v2(&value, words + 16, 4));
  EQUAL(value, 9);
  EQUAL(cuStreamWaitValue32_v2(waiter, words + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuStreamWriteValue64_v2(waiter, words + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(words));
  OK(cuStreamDestroy_v2(writer));
  OK(cuStreamDestroy_v2(waiter));
}

TEST(many_threads_use_streams_at_once) {
  Primary primary;
  static std::atomic<int> count;
  count = 0;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&primary, worker] {
      if (cuCtxSetCurrent(primary.context) != CUDA_SUCCESS) abort();
      for (int round = 0; round < 30; ++round) {
        CUstream stream = nullptr;
        CUevent event = nullptr;
        if (cuStreamCreate(&stream, static_cast<unsigned>(worker & 1)) != CUDA_SUCCESS ||
            cuEventCreate(&event, 0) != CUDA_SUCCESS)
          abort();
        cuLaunchHostFunc(stream, [](void*) { ++count; }, nullptr);
        cuEventRecord(event, stream);
        cuStreamWaitEvent(nullptr, event, 0);
        cuLaunchHostFunc(nullptr, [](void*) { ++count; }, nullptr);
        cuEventSynchronize(event);
        cuEventDestroy_v2(event);
        cuStreamDestroy_v2(stream);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  OK(cuCtxSynchronize());
  EQUAL(count.load(), 4 * 30 * 2);
}

TEST(delays_end_early_when_the_context_fails) {
  Primary primary(1);
  CUstream stream = check::stream();
  OK(shoalSimStreamDelay(stream, 60000 * kMillisecond));
  std::thread injector([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    shoalSimInjectError(1, CUDA_ERROR_LAUNCH_FAILED);
  });
  EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  injector.join();
  OK(shoalSimInjectError(1, CUDA_SUCCESS));
}
