// A small test framework. Tests register themselves and run one after the other; the report ends with a count.
#pragma once

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "shoal/cuda.h"

namespace check {

struct Test {
  const char* name;
  void (*body)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

struct Registration {
  Registration(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

struct Failure : std::exception {
  std::string text;
  explicit Failure(std::string what) : text(std::move(what)) {}
  const char* what() const noexcept override { return text.c_str(); }
};

struct Skip : std::exception {
  const char* reason;
  explicit Skip(const char* why) : reason(why) {}
  const char* what() const noexcept override { return reason; }
};

// True if the driver is that of a GPU. tooling/gpu builds some of the tests against it.
inline bool isOnHardware() { return getenv("SHOAL_TEST_HARDWARE") != nullptr; }

// Skips what differs on hardware: texts of errors, refused calls, instructions of later GPUs.
inline void softwareOnly(const char* why) {
  if (isOnHardware()) throw Skip(why);
}

[[noreturn]] inline void fail(const char* file, int line, const std::string& text) {
  throw Failure(std::string(file) + ":" + std::to_string(line) + ": " + text);
}

template <class Left, class Right>
void equal(const char* file, int line, const char* text, const Left& left, const Right& right) {
  if (left == static_cast<Left>(right)) return;
  fail(file, line,
       std::string(text) + ": got " + std::to_string(static_cast<long long>(left)) + ", want " +
           std::to_string(static_cast<long long>(right)));
}

// Set by programs that start themselves again, for example as another rank. Gets the arguments after "--child".
inline int (*child)(int count, char** arguments) = nullptr;

inline int run(int count, char** arguments) {
  if (count > 1 && strcmp(arguments[1], "--child") == 0) return child(count - 2, arguments + 2);
  if (count > 1 && strcmp(arguments[1], "--list") == 0) {
    for (auto& test : tests()) printf("%s\n", test.name);
    return 0;
  }
  int passed = 0, failed = 0, skipped = 0;
  for (auto& test : tests()) {
    if (count > 1 && strcmp(arguments[1], test.name) != 0) continue;
    try {
      test.body();
      printf("ok %s\n", test.name);
      ++passed;
    } catch (const Skip& skip) {
      printf("skipped %s: %s\n", test.name, skip.what());
      ++skipped;
    } catch (const std::exception& error) {
      printf("FAILED %s: %s\n", test.name, error.what());
      ++failed;
    }
    fflush(stdout);
  }
  printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  fflush(stdout);
  return failed == 0 && passed > 0 ? 0 : 1;
}

// Makes the primary context of a device current. The end of the scope releases it and leaves no context current.
class Primary {
 public:
  explicit Primary(int device = 0) : device_(device) {
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
      throw Failure("no primary context");
    cuCtxPushCurrent_v2(context);
  }
  ~Primary() {
    cuCtxPopCurrent_v2(nullptr);
    cuDevicePrimaryCtxRelease_v2(device_);
  }
  CUcontext context = nullptr;

 private:
  int device_;
};

inline CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream made = nullptr;
  if (cuStreamCreate(&made, flags) != CUDA_SUCCESS) throw Failure("no stream");
  return made;
}

inline CUevent event(unsigned flags = 0) {
  CUevent made = nullptr;
  if (cuEventCreate(&made, flags) != CUDA_SUCCESS) throw Failure("no event");
  return made;
}

inline CUdeviceptr memory(size_t bytes) {
  CUdeviceptr made = 0;
  if (cuMemAlloc_v2(&made, bytes) != CUDA_SUCCESS) throw Failure("no memory");
  return made;
}

}  // namespace check

#define TEST(name)                                             \
  static void name();                                          \
  static check::Registration registration_##name(#name, name); \
  static void name()
#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) check::fail(__FILE__, __LINE__, #condition); \
  } while (0)
#define EQUAL(left, right) check::equal(__FILE__, __LINE__, #left, left, right)
#define OK(call) check::equal(__FILE__, __LINE__, #call, static_cast<int>(call), 0)

int main(int count, char** arguments) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return check::run(count, arguments);
}
