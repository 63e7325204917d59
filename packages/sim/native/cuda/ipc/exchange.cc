#include "exchange.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "../../shared/descriptor.h"

namespace shoal {

namespace {

constexpr char kMagic[8] = {'s', 'h', 'o', 'a', 'l', 'i', 'p', '1'};
constexpr int kTimeoutSeconds = 5;

struct Offers {
  std::mutex mutex;
  std::atomic<bool> isServing{false};
  ProcessName process;
  uint64_t next = 1;
  std::map<std::pair<TicketKind, uint64_t>, uint64_t> ids;
  std::map<uint64_t, Deliver> byId;
};

Offers& offers() {
  static Offers* all = new Offers;
  return *all;
}

socklen_t nameOf(const unsigned char* process, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  // The leading zero keeps the name out of the file system; it goes with the process.
  char* at = address.sun_path + 1;
  at += snprintf(at, 16, "shoal-sim-");
  for (int index = 0; index < 16; ++index) at += snprintf(at, 3, "%02x", process[index]);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + static_cast<size_t>(at - address.sun_path));
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

void answer(int connection) {
  uint64_t id = 0;
  if (!isOfSameUser(connection) || recv(connection, &id, sizeof id, MSG_WAITALL) != sizeof id) return;
  std::shared_ptr<SharedFile> file;
  {
    std::lock_guard lock(offers().mutex);
    auto found = offers().byId.find(id);
    if (found != offers().byId.end()) file = found->second();
  }
  sendDescriptor(connection, file != nullptr ? file->descriptor() : -1);
}

void serve(int listening) {
  pthread_setname_np(pthread_self(), "shoal-ipc");
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

// The caller holds the mutex.
void startServing(Offers& own) {
  if (own.isServing) return;
  if (getrandom(&own.process, sizeof own.process, 0) != sizeof own.process) throw std::system_error(errno, std::generic_category(), "getrandom");
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listening < 0) throw std::system_error(errno, std::generic_category(), "socket");
  sockaddr_un address;
  const socklen_t length = nameOf(own.process.bytes, address);
  if (bind(listening, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listening, 64) != 0) {
    close(listening);
    throw std::system_error(errno, std::generic_category(), "bind");
  }
  // The thread must take no signals that are meant for the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(serve, listening).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  own.isServing = true;
}

}  // namespace

const ProcessName& processName() {
  Offers& own = offers();
  std::lock_guard lock(own.mutex);
  startServing(own);
  return own.process;
}

bool isReachable(const ProcessName& name) {
  Offers& own = offers();
  if (own.isServing && memcmp(name.bytes, own.process.bytes, sizeof name.bytes) == 0) return true;
  sockaddr_un address;
  const socklen_t length = nameOf(name.bytes, address);
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // Whoever cannot ask takes the other for alive.
  if (connection < 0) return true;
  const bool isThere = connect(connection, reinterpret_cast<sockaddr*>(&address), length) == 0 || (errno != ECONNREFUSED && errno != ENOENT);
  close(connection);
  return isThere;
}

Ticket offer(TicketKind kind, uint64_t key, Deliver deliver) {
  Offers& own = offers();
  std::lock_guard lock(own.mutex);
  startServing(own);
  uint64_t& id = own.ids[{kind, key}];
  if (id == 0) id = own.next++;
  own.byId[id] = std::move(deliver);
  Ticket ticket = {};
  memcpy(ticket.magic, kMagic, sizeof kMagic);
  memcpy(ticket.process, own.process.bytes, sizeof ticket.process);
  ticket.id = id;
  ticket.kind = kind;
  return ticket;
}

Ticket offerFile(const std::shared_ptr<SharedFile>& file) {
  return offer(TicketKind::fabric, file->identity().inode, [weak = std::weak_ptr<SharedFile>(file)] { return weak.lock(); });
}

void withdraw(TicketKind kind, uint64_t key) {
  Offers& own = offers();
  if (!own.isServing) return;
  std::lock_guard lock(own.mutex);
  auto found = own.ids.find({kind, key});
  if (found == own.ids.end()) return;
  own.byId.erase(found->second);
  own.ids.erase(found);
}

void writeTicket(const Ticket& ticket, void* handle) {
  memset(handle, 0, CU_IPC_HANDLE_SIZE);
  memcpy(handle, &ticket, sizeof ticket);
}

bool readTicket(const void* handle, TicketKind kind, Ticket& ticket) {
  memcpy(&ticket, handle, sizeof ticket);
  return memcmp(ticket.magic, kMagic, sizeof kMagic) == 0 && ticket.kind == kind;
}

bool isOwn(const Ticket& ticket) {
  Offers& own = offers();
  return own.isServing && memcmp(ticket.process, own.process.bytes, sizeof ticket.process) == 0;
}

std::shared_ptr<SharedFile> fetch(const Ticket& ticket) {
  if (isOwn(ticket)) {
    std::lock_guard lock(offers().mutex);
    auto found = offers().byId.find(ticket.id);
    return found != offers().byId.end() ? found->second() : nullptr;
  }
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) throw std::system_error(errno, std::generic_category(), "socket");
  sockaddr_un address;
  const socklen_t length = nameOf(ticket.process, address);
  limitWaiting(connection);
  int descriptor = -1;
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), length) == 0 && isOfSameUser(connection) &&
      send(connection, &ticket.id, sizeof ticket.id, MSG_NOSIGNAL) == sizeof ticket.id) {
    descriptor = receiveDescriptor(connection);
  }
  close(connection);
  if (descriptor < 0) return nullptr;
  std::shared_ptr<SharedFile> file;
  try {
    file = SharedFile::open(descriptor);
  } catch (...) {
    close(descriptor);
    throw;
  }
  close(descriptor);
  return file;
}

}  // namespace shoal
