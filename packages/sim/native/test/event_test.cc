// Events: recording, order between streams and devices, elapsed time.
#include <atomic>

#include "check.h"

using check::Primary;

namespace {
constexpr uint64_t kMillisecond = 1000000;
}

TEST(an_event_that_was_never_recorded_is_complete) {
  Primary primary;
  CUevent event = check::event();
  OK(cuEventQuery(event));
  OK(cuEventSynchronize(event));
  OK(cuStreamWaitEvent(nullptr, event, 0));
  OK(cuEventDestroy_v2(event));
  EQUAL(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

TEST(elapsed_time_measures_the_work_between) {
  Primary primary;
  CUstream stream = check::stream();
  CUevent start = check::event(), end = check::event();
  OK(cuEventRecord(start, stream));
  OK(shoalSimStreamDelay(stream, 50 * kMillisecond));
  OK(cuEventRecord(end, stream));
  float elapsed = 0;
  EQUAL(cuEventElapsedTime(&elapsed, start, end), CUDA_ERROR_NOT_READY);
  EQUAL(cuEventQuery(end), CUDA_ERROR_NOT_READY);
  OK(cuEventSynchronize(end));
  OK(cuEventElapsedTime(&elapsed, start, end));
  CHECK(elapsed >= 49.9f && elapsed < 2000);
  OK(cuEventElapsedTime_v2(&elapsed, end, start));
  CHECK(elapsed < -49.9f);
  OK(cuEventDestroy_v2(start));
  OK(cuEventDestroy_v2(end));
  OK(cuStreamDestroy_v2(stream));
}

TEST(elapsed_time_needs_timing_and_recordings) {
  Primary primary;
  CUevent timed = check::event(), untimed = check::event(CU_EVENT_DISABLE_TIMING), fresh = check::event();
  float elapsed = 0;
  OK(cuEventRecord(timed, nullptr));
  OK(cuEventRecord(untimed, nullptr));
  OK(cuCtxSynchronize());
  EQUAL(cuEventElapsedTime(&elapsed, timed, untimed), CUDA_ERROR_INVALID_HANDLE);
  EQUAL(cuEventElapsedTime(&elapsed, timed, fresh), CUDA_ERROR_INVALID_HANDLE);
  EQUAL(cuEventElapsedTime(nullptr, timed, timed), CUDA_ERROR_INVALID_HANDLE);
  OK(cuEventElapsedTime(&elapsed, timed, timed));
  CHECK(elapsed == 0);
}

TEST(a_stream_waits_for_the_recording_it_saw) {
  Primary primary;
  CUstream first = check::stream(), second = check::stream();
  CUevent event = check::event(CU_EVENT_DISABLE_TIMING);
  static std::atomic<int> order;
  order = 0;
  OK(shoalSimStreamDelay(first, 40 * kMillisecond));
  OK(cuLaunchHostFunc(first, [](void*) { order = 1; }, nullptr));
  OK(cuEventRecord(event, first));
  OK(cuStreamWaitEvent(second, event, 0));
  // Recording the event again later does not affect the earlier wait.
  OK(shoalSimStreamDelay(first, 10000 * kMillisecond));
  OK(cuEventRecord(event, first));
  static std::atomic<int> seen;
  seen = -1;
  OK(cuLaunchHostFunc(second, [](void*) { seen = order.load(); }, nullptr));
  OK(cuStreamSynchronize(second));
  EQUAL(seen.load(), 1);
  EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  OK(shoalSimInjectError(0, CUDA_ERROR_LAUNCH_FAILED));  // ends the long delay
  EQUAL(cuStreamSynchronize(first), CUDA_ERROR_LAUNCH_FAILED);
  OK(shoalSimInjectError(0, CUDA_SUCCESS));
}

TEST(events_order_streams_of_different_devices) {
  Primary one(0);
  CUstream first = check::stream();
  CUevent event = check::event();
  static std::atomic<int> order;
  order = 0;
  OK(shoalSimStreamDelay(first, 30 * kMillisecond));
  OK(cuLaunchHostFunc(first, [](void*) { order = 1; }, nullptr));
  OK(cuEventRecord(event, first));
  Primary two(1);
  CUstream second = check::stream();
  OK(cuStreamWaitEvent(second, event, 0));
  static std::atomic<int> seen;
  OK(cuLaunchHostFunc(second, [](void*) { seen = order.load(); }, nullptr));
  OK(cuStreamSynchronize(second));
  EQUAL(seen.load(), 1);
  EQUAL(cuEventRecord(event, second), CUDA_ERROR_INVALID_HANDLE);
}

TEST(destroying_an_event_leaves_its_waits_alone) {
  Primary primary;
  CUstream first = check::stream(), second = check::stream();
  CUevent event = check::event();
  static std::atomic<bool> isDone;
  isDone = false;
  OK(shoalSimStreamDelay(first, 30 * kMillisecond));
  OK(cuLaunchHostFunc(first, [](void*) { isDone = true; }, nullptr));
  OK(cuEventRecord(event, first));
  OK(cuStreamWaitEvent(second, event, 0));
  OK(cuEventDestroy_v2(event));
  OK(cuStreamSynchronize(second));
  CHECK(isDone);
}

TEST(flags_are_checked) {
  Primary primary;
  CUevent event = nullptr;
  EQUAL(cuEventCreate(&event, 8), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuEventCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
  EQUAL(cuEventRecordWithFlags(event, nullptr, 2), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuStreamWaitEvent(nullptr, event, 2), CUDA_ERROR_INVALID_VALUE);
}
