// What the recorders say, one `group.name = code` a line, and the processes in which their groups run.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

namespace record {

inline std::string& group() {
  static std::string running;
  return running;
}

// Prints an answer of the group that runs.
inline void say(const std::string& name, long long value) {
  printf("%s.%s = %lld\n", group().c_str(), name.c_str(), value);
  fflush(stdout);
}

// Runs a group in a process of its own, so that what crashes, poisons or hangs a library ends with its group.
inline void runGroup(const std::string& name, const std::function<void()>& body, unsigned seconds = 60) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    group() = name;
    alarm(seconds);
    body();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status)) return;
  printf("%s ends by signal = %d\n", name.c_str(), WTERMSIG(status));
  fflush(stdout);
}

}  // namespace record
