#include "localSocket.h"

#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace shoal {

namespace {

constexpr int kTimeoutSeconds = 5;

struct Address {
  sockaddr_un address = {};
  socklen_t length;

  explicit Address(const std::string& name) {
    address.sun_family = AF_UNIX;
    // The leading zero byte makes it an abstract name, outside the file system.
    const size_t characters = std::min(name.size(), sizeof address.sun_path - 1);
    memcpy(address.sun_path + 1, name.data(), characters);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + characters);
  }

  const sockaddr* pointer() const { return reinterpret_cast<const sockaddr*>(&address); }
};

void limitWaiting(int socket) {
  const timeval limit = {kTimeoutSeconds, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool isOfSameUser(int socket) {
  ucred peer;
  socklen_t length = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

int closed(int socket) {
  const int problem = errno;
  close(socket);
  errno = problem;
  return -1;
}

void accept(int listening, const char* threadName, const std::function<void(int)>& answer) {
  pthread_setname_np(pthread_self(), threadName);
  for (;;) {
    const int connection = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      // The process may be out of descriptors. Clients wait in the queue in the meantime.
      if (errno != EINTR) usleep(10000);
      continue;
    }
    limitWaiting(connection);
    if (isOfSameUser(connection)) answer(connection);
    close(connection);
  }
}

}  // namespace

RandomBytes randomBytes() {
  RandomBytes random;
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    throw std::system_error(errno, std::generic_category(), "getrandom");
  return random;
}

std::string nameOf(const char* prefix, const RandomBytes& random) {
  std::string name = prefix;
  for (const unsigned char byte : random.bytes) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", byte);
    name += digits;
  }
  return name;
}

int listenAt(const std::string& name, int backlog) {
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listening < 0) return -1;
  const Address address(name);
  if (bind(listening, address.pointer(), address.length) != 0 || listen(listening, backlog) != 0)
    return closed(listening);
  return listening;
}

int connectTo(const std::string& name) {
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  limitWaiting(connection);
  const Address address(name);
  if (connect(connection, address.pointer(), address.length) != 0 || !isOfSameUser(connection))
    return closed(connection);
  return connection;
}

bool isListening(const std::string& name) {
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connection < 0) return true;
  const Address address(name);
  const bool isThere = connect(connection, address.pointer(), address.length) == 0 || errno != ECONNREFUSED;
  close(connection);
  return isThere;
}

bool serve(int listening, const char* threadName, std::function<void(int)> answer) {
  // Block signals, because the thread must not handle signals for the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int problem = 0;
  try {
    std::thread([listening, threadName, answer = std::move(answer)] {
      accept(listening, threadName, answer);
    }).detach();
  } catch (const std::system_error& error) {
    problem = error.code().value();
  } catch (const std::bad_alloc&) {
    problem = ENOMEM;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (problem == 0) return true;
  close(listening);
  errno = problem;
  return false;
}

}  // namespace shoal
