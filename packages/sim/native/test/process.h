// A second process for a test: the program starts itself again. Both processes talk over a socket that also carries
// descriptors.
#pragma once

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shared/descriptor.h"
#include "check.h"

namespace process {

constexpr int kSocket = 3;  // the child's end

class Peer {
 public:
  explicit Peer(int socket) : socket_(socket) {}
  template <class Value>
  void send(const Value& value) {
    CHECK(::send(socket_, &value, sizeof value, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof value));
  }
  template <class Value>
  Value receive() {
    Value value;
    if (::recv(socket_, &value, sizeof value, MSG_WAITALL) != static_cast<ssize_t>(sizeof value))
      throw check::Failure("the other process says nothing");
    return value;
  }
  void sendDescriptor(int descriptor) { CHECK(shoal::sendDescriptor(socket_, descriptor)); }
  int receiveDescriptor() {
    const int descriptor = shoal::receiveDescriptor(socket_);
    CHECK(descriptor >= 0);
    return descriptor;
  }

 protected:
  int socket_;
};

class Child : public Peer {
 public:
  explicit Child(const char* role) : Peer(-1) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw check::Failure("no sockets");
    process_ = fork();
    if (process_ == 0) {
      // dup2 of a descriptor onto itself would keep it close-on-exec.
      const int other = dup(ends[1]);
      dup2(other, kSocket);
      execl("/proc/self/exe", "test", "--child", role, nullptr);
      _exit(127);
    }
    close(ends[1]);
    socket_ = ends[0];
  }
  ~Child() {
    if (process_ > 0) kill();
    close(socket_);
  }
  // The child's result: 0 on success.
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  void kill() {
    ::kill(process_, SIGKILL);
    wait();
  }

 private:
  pid_t process_ = -1;
};

using Role = void (*)(Peer& parent);
struct NamedRole {
  const char* name;
  Role run;
};

inline int runRole(const NamedRole* roles, size_t count, const char* name) {
  Peer parent(kSocket);
  for (size_t index = 0; index < count; ++index) {
    if (strcmp(roles[index].name, name) != 0) continue;
    try {
      roles[index].run(parent);
      return 0;
    } catch (const std::exception& error) {
      fprintf(stderr, "child %s: %s\n", name, error.what());
      return 1;
    }
  }
  return 2;
}

// Defines the roles of a test program's children, by name.
#define ROLES(...)                                                                  \
  static const process::NamedRole roles[] = {__VA_ARGS__};                          \
  static int runChild(int count, char** arguments) {                                \
    return count < 1 ? 2 : process::runRole(roles, std::size(roles), arguments[0]); \
  }                                                                                 \
  static const bool isChildSet = (check::child = runChild, true)

}  // namespace process
