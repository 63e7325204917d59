// Shared by the programs of `questions/corners`.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace corners {

inline std::string running;
inline bool isSilent = false;

// Prints an answer of the running group.
inline void say(const std::string& name, long long value) {
  if (isSilent) return;
  printf("%s.%s = %lld\n", running.c_str(), name.c_str(), value);
  fflush(stdout);
}

// An integer, enumerator, handle or address that converts to the type of any parameter or variable.
struct Any {
  unsigned long long value;
  template <class T>
  operator T() const {
    return (T)value;
  }
};
template <class T>
auto any(T value) {
  if constexpr (std::is_class_v<T> || std::is_floating_point_v<T>) return value;
  else return Any{(unsigned long long)value};
}

template <class T>
void clear(T& variable) {
  memset((void*)&variable, 0, sizeof variable);
}

// Returns memory that the processes of a group share.
template <class T>
T* shared() {
  return (T*)mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

// Reads numbers from memory.
inline uint32_t word(const void* at) { return *(const volatile uint32_t*)at; }
inline uint64_t wide(const void* at) {
  uint64_t number;
  memcpy(&number, at, sizeof number);
  return number;
}
inline int poke(void* at, uint32_t number) {
  *(volatile uint32_t*)at = number;
  return 0;
}
// Waits until another process or thread stores a value other than zero there.
inline int await(void* at) {
  while (word(at) == 0) usleep(1000);
  return 0;
}

// Returns whole pages of host memory.
inline void* pages() { return mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

// Runs a body in a new process. Waits for the process if `isAwaited`.
inline void inProcess(const std::function<void()>& body, bool isAwaited) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    body();
    fflush(stdout);
    _exit(0);
  }
  if (isAwaited) waitpid(child, nullptr, 0);
}
inline int reap() { return wait(nullptr) < 0; }

struct Group {
  const char* name;
  void (*body)();
};

// Runs all groups, or the named one, each in a new process. A group that crashes, poisons or hangs a library
// then affects no other group.
inline int runGroups(int count, char** arguments, const std::vector<Group>& groups, unsigned seconds) {
  for (const auto& [name, body] : groups) {
    if (count > 1 && std::string(arguments[1]) != name) continue;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      running = name;
      alarm(seconds);
      body();
      fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) continue;
    printf("%s ends by signal = %d\n", name, WTERMSIG(status));
    fflush(stdout);
  }
  return 0;
}

}  // namespace corners
