#include "exchange.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "../shared/descriptor.h"
#include "../shared/localSocket.h"

namespace shoal::nvshmem {

namespace {

constexpr uint32_t kRequestMagic = 0x736d7673;
enum class RequestKind : uint32_t { descriptor = 1, exit = 2 };
struct Request {
  uint32_t magic;
  RequestKind kind;
  uint64_t value;
};

int ask(const std::string& name, const Request& request) {
  const int connection = connectTo(name);
  if (connection < 0 || send(connection, &request, sizeof request, MSG_NOSIGNAL) == sizeof request) return connection;
  close(connection);
  return -1;
}

}  // namespace

bool Exchange::listen(const std::string& name, std::string& problem) {
  const int listening = listenAt(name, 128);
  if (listening < 0) {
    problem = std::string("no socket to listen on: ") + strerror(errno);
    return false;
  }
  if (!serve(listening, "shoal-nvshmem", [this](int connection) { answer(connection); })) {
    problem = std::string("no thread that answers other PEs: ") + strerror(errno);
    return false;
  }
  name_ = name;
  return true;
}

void Exchange::answer(int connection) {
  Request request;
  if (recv(connection, &request, sizeof request, MSG_WAITALL) != sizeof request || request.magic != kRequestMagic)
    return;
  if (request.kind == RequestKind::exit) _exit(static_cast<int>(request.value));
  // Hold the lock while sending, so that the descriptor is not closed in the meantime.
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
  const int connection = ask(name, {kRequestMagic, RequestKind::descriptor, key});
  if (connection < 0) return -1;
  const int descriptor = receiveDescriptor(connection);
  close(connection);
  return descriptor;
}

void Exchange::askToExit(const std::string& name, int status) {
  const int connection =
      ask(name, {kRequestMagic, RequestKind::exit, static_cast<uint64_t>(static_cast<uint32_t>(status))});
  if (connection >= 0) close(connection);
}

}  // namespace shoal::nvshmem
