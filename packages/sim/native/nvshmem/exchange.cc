#include "exchange.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>

#include "../shared/descriptor.h"

namespace shoal::nvshmem {

namespace {

constexpr uint32_t kMagic = 0x736d7673;
constexpr int kTimeoutSeconds = 5;
enum class Wish : uint32_t { descriptor = 1, exit = 2 };
struct Request {
  uint32_t magic;
  Wish wish;
  uint64_t value;
};

socklen_t addressOf(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  // The leading zero keeps the name out of the file system.
  memcpy(address.sun_path + 1, name.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

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

int ask(const std::string& name, const Request& request) {
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  limitWaiting(connection);
  sockaddr_un address;
  const socklen_t length = addressOf(name, address);
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), length) == 0 && isOfSameUser(connection) &&
      send(connection, &request, sizeof request, MSG_NOSIGNAL) == sizeof request) {
    return connection;
  }
  close(connection);
  return -1;
}

}  // namespace

bool Exchange::listen(const std::string& name, std::string& problem) {
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address;
  const socklen_t length = addressOf(name, address);
  if (listening < 0 || bind(listening, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(listening, 128) != 0) {
    problem = std::string("no socket to meet at: ") + strerror(errno);
    if (listening >= 0) close(listening);
    return false;
  }
  name_ = name;
  // The thread must take no signals that are meant for the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(&Exchange::serve, this, listening).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return true;
}

void Exchange::serve(int listening) {
  pthread_setname_np(pthread_self(), "shoal-nvshmem");
  for (;;) {
    const int connection = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      // Out of descriptors, perhaps: those who ask wait in the queue meanwhile.
      if (errno != EINTR) usleep(10000);
      continue;
    }
    limitWaiting(connection);
    answer(connection);
    close(connection);
  }
}

void Exchange::answer(int connection) {
  Request request;
  if (!isOfSameUser(connection) || recv(connection, &request, sizeof request, MSG_WAITALL) != sizeof request || request.magic != kMagic) return;
  if (request.wish == Wish::exit) _exit(static_cast<int>(request.value));
  // Held while it is sent, so that it is not closed meanwhile.
  std::lock_guard lock(mutex_);
  auto found = offered_.find(request.value);
  sendDescriptor(connection, found != offered_.end() ? found->second : -1);
}

uint64_t Exchange::offer(int descriptor) {
  std::lock_guard lock(mutex_);
  offered_[next_] = descriptor;
  return next_++;
}

void Exchange::offerAs(uint64_t key, int descriptor) {
  std::lock_guard lock(mutex_);
  offered_[key] = descriptor;
}

void Exchange::withdraw(uint64_t key) {
  std::lock_guard lock(mutex_);
  offered_.erase(key);
}

int Exchange::fetch(const std::string& name, uint64_t key) {
  const int connection = ask(name, {kMagic, Wish::descriptor, key});
  if (connection < 0) return -1;
  const int descriptor = receiveDescriptor(connection);
  close(connection);
  return descriptor;
}

void Exchange::askToExit(const std::string& name, int status) {
  const int connection = ask(name, {kMagic, Wish::exit, static_cast<uint64_t>(static_cast<uint32_t>(status))});
  if (connection >= 0) close(connection);
}

std::string randomName(const char* prefix) {
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random) throw std::system_error(errno, std::generic_category(), "getrandom");
  std::string name = prefix;
  for (const unsigned char byte : random) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", byte);
    name += digits;
  }
  return name;
}

}  // namespace shoal::nvshmem
