#include "exchange.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>

#include "../../shared/descriptor.h"

namespace shoal {

namespace {

constexpr char kMagic[8] = {'s', 'h', 'o', 'a', 'l', 'i', 'p', '1'};
constexpr const char* kPrefix = "shoal-sim-";

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

void answer(int connection) {
  uint64_t id = 0;
  if (recv(connection, &id, sizeof id, MSG_WAITALL) != sizeof id) return;
  std::shared_ptr<SharedFile> file;
  {
    std::lock_guard lock(offers().mutex);
    auto found = offers().byId.find(id);
    if (found != offers().byId.end()) file = found->second();
  }
  sendDescriptor(connection, file != nullptr ? file->descriptor() : -1);
}

// The caller holds the mutex.
void startServing(Offers& own) {
  if (own.isServing) return;
  own.process = randomBytes();
  const int listening = listenAt(nameOf(kPrefix, own.process), 64);
  if (listening < 0) throw std::system_error(errno, std::generic_category(), "bind");
  if (!serve(listening, "shoal-ipc", answer))
    throw std::system_error(errno, std::generic_category(), "a thread that shares memory");
  own.isServing = true;
}

bool isOutOfSockets(int problem) {
  return problem == EMFILE || problem == ENFILE || problem == ENOBUFS || problem == ENOMEM;
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
  if (own.isServing && memcmp(&name, &own.process, sizeof name) == 0) return true;
  return isListening(nameOf(kPrefix, name));
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
  ticket.process = own.process;
  ticket.id = id;
  ticket.kind = kind;
  return ticket;
}

Ticket offerFile(const std::shared_ptr<SharedFile>& file) {
  return offer(TicketKind::fabric, file->identity().inode,
               [weak = std::weak_ptr<SharedFile>(file)] { return weak.lock(); });
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

uint64_t checksumOf(const void* bytes, size_t count) {
  uint64_t sum = 0xcbf29ce484222325;  // FNV-1a
  for (size_t i = 0; i < count; ++i) sum = (sum ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
  return sum;
}

void writeTicket(const Ticket& ticket, void* handle) {
  Ticket sealed = ticket;
  sealed.checksum = checksumOf(&sealed, offsetof(Ticket, checksum));
  memset(handle, 0, CU_IPC_HANDLE_SIZE);
  memcpy(handle, &sealed, sizeof sealed);
}

bool readTicket(const void* handle, TicketKind kind, Ticket& ticket) {
  memcpy(&ticket, handle, sizeof ticket);
  if (memcmp(ticket.magic, kMagic, sizeof kMagic) != 0 || ticket.kind != kind) return false;
  return ticket.checksum == checksumOf(&ticket, offsetof(Ticket, checksum));
}

bool isOwn(const Ticket& ticket) {
  Offers& own = offers();
  return own.isServing && memcmp(&ticket.process, &own.process, sizeof ticket.process) == 0;
}

std::shared_ptr<SharedFile> fetch(const Ticket& ticket) {
  if (isOwn(ticket)) {
    std::lock_guard lock(offers().mutex);
    auto found = offers().byId.find(ticket.id);
    return found != offers().byId.end() ? found->second() : nullptr;
  }
  const int connection = connectTo(nameOf(kPrefix, ticket.process));
  if (connection < 0) {
    if (isOutOfSockets(errno)) throw std::system_error(errno, std::generic_category(), "socket");
    return nullptr;
  }
  const bool isAsked = send(connection, &ticket.id, sizeof ticket.id, MSG_NOSIGNAL) == sizeof ticket.id;
  const int descriptor = isAsked ? receiveDescriptor(connection) : -1;
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
