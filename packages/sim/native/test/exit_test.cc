// Processes that end with work in flight. They end at once, with the status they chose.
#include <pthread.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "check.h"
#include "shoal/nccl.h"

using check::Primary;

namespace {

constexpr uint64_t kMinute = 60000000000;

// Destroyed late during process exit.
struct Late {
  bool isArmed = false;
  ~Late() {
    if (!isArmed) return;
    CUcontext context = nullptr;
    CUdeviceptr memory = 0;
    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || cuMemAlloc_v2(&memory, 16) != CUDA_SUCCESS ||
        cuMemsetD8Async(memory, 0, 16, nullptr) != CUDA_SUCCESS)
      _exit(9);
  }
} late;

int runChild(int, char** arguments) {
  const std::string role = arguments[0];
  static Primary* primary = new Primary;
  CUstream stream = check::stream();
  if (role == "queued") {
    shoalSimStreamDelay(stream, kMinute);
    cuLaunchHostFunc(stream, [](void*) { abort(); }, nullptr);
    shoalSimStreamDelay(CU_STREAM_PER_THREAD, kMinute);
  } else if (role == "host function") {
    static std::atomic<bool> isRunning;
    isRunning = false;
    cuLaunchHostFunc(
        stream,
        [](void*) {
          isRunning = true;
          for (;;) usleep(1000);
        },
        nullptr);
    while (!isRunning) usleep(100);
  } else if (role == "threads") {
    // Threads that wait for streams, and one that ends while it uses its own default stream.
    for (int index = 0; index < 3; ++index) {
      std::thread([stream, index] {
        cuCtxSetCurrent(primary->context);
        shoalSimStreamDelay(index == 0 ? CU_STREAM_PER_THREAD : stream, index == 0 ? 1000000 : kMinute);
        if (index != 0) cuStreamSynchronize(stream);
      }).detach();
    }
    usleep(20000);
  } else if (role == "late calls") {
    late.isArmed = true;
    shoalSimStreamDelay(stream, kMinute);
  } else if (role == "collective") {
    ncclComm_t comms[2];
    CUdeviceptr memory = check::memory(64);
    if (ncclCommInitAll(comms, 2, nullptr) != ncclSuccess) return 1;
    auto* data = reinterpret_cast<void*>(memory);
    if (ncclAllReduce(data, data, 16, ncclInt32, ncclSum, comms[0], stream) != ncclSuccess) return 1;
  }
  return 42;
}
const bool isChildSet = (check::child = runChild, true);

void endsWell(const char* role) {
  const auto start = std::chrono::steady_clock::now();
  const pid_t process = fork();
  if (process == 0) {
    execl("/proc/self/exe", "exit_test", "--child", role, nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(process, &status, 0);
  CHECK(WIFEXITED(status));
  EQUAL(WEXITSTATUS(status), 42);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

}  // namespace

TEST(with_queued_work) { endsWell("queued"); }
TEST(inside_a_host_function) { endsWell("host function"); }
TEST(with_threads_that_wait) { endsWell("threads"); }
TEST(with_calls_from_a_late_destructor) { endsWell("late calls"); }
TEST(inside_a_collective) { endsWell("collective"); }
