#include "rendezvous.h"
#include "problem.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <random>

namespace shoal::nccl {

namespace {

constexpr off_t kLockAt = (off_t{1} << 40) - 1;  // beyond the data, because a lock needs no byte at its offset

std::string nameOf(uint64_t key) {
  char name[64];
  snprintf(name, sizeof name, "shoal-nccl-%016llx", static_cast<unsigned long long>(key));
  return name;
}

bool isNamed(const char* link, const std::string& name) {
  char target[128];
  const ssize_t length = readlink(link, target, sizeof target - 1);
  if (length <= 0) return false;
  target[length] = '\0';
  return std::string(target) == "/memfd:" + name + " (deleted)";
}

// Opens a file that a process holds, or returns -1 if the process does not hold it any more. Process ids and descriptor
// numbers are reused, so the name is checked before and after.
int openHeld(int process, int descriptor, uint64_t key) {
  const std::string name = nameOf(key);
  char link[64];
  snprintf(link, sizeof link, "/proc/%d/fd/%d", process, descriptor);
  if (!isNamed(link, name)) return -1;
  const int opened = ::open(link, O_RDWR | O_CLOEXEC);
  if (opened < 0) return -1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", opened);
  if (isNamed(link, name)) return opened;
  close(opened);
  return -1;
}

std::shared_ptr<char> mapShared(int descriptor, size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return nullptr;
  return std::shared_ptr<char>(static_cast<char*>(at), [bytes](char* mapped) { munmap(mapped, bytes); });
}

std::shared_ptr<Rendezvous> rendezvousIn(int descriptor, bool ownsDescriptor, std::string& problem) {
  auto memory = mapShared(descriptor, kRendezvousBytes);
  if (!memory) {
    problem = because("shared memory cannot be mapped", errno);
    if (ownsDescriptor) close(descriptor);
    return nullptr;
  }
  auto* entries = reinterpret_cast<RendezvousEntry*>(memory.get());
  return std::make_shared<Rendezvous>(std::move(memory), entries, descriptor, ownsDescriptor);
}

// Creates memory that lives until its last user closes it. Pages only take memory after their first use.
int makeMemory(uint64_t key, size_t bytes, std::string& problem) {
  const int descriptor = memfd_create(nameOf(key).c_str(), MFD_CLOEXEC);
  if (descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) return descriptor;
  problem = because("shared memory cannot be made", errno);
  if (descriptor >= 0) close(descriptor);
  return -1;
}

// Excludes other threads. File locks exclude other processes, but cannot separate threads.
std::mutex& threads() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}

}  // namespace

uint64_t randomNumber() {
  std::random_device random;
  return (static_cast<uint64_t>(random()) << 32 | random()) | 1;
}

class Rendezvous::Lock {
 public:
  explicit Lock(int descriptor) : threads_(threads()), descriptor_(descriptor) { set(F_WRLCK); }
  ~Lock() { set(F_UNLCK); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  // If a process is killed while it holds the lock, the kernel releases the lock.
  void set(short type) {
    if (descriptor_ < 0) return;
    struct flock lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = kLockAt;
    lock.l_len = 1;
    while (fcntl(descriptor_, F_OFD_SETLKW, &lock) != 0 && errno == EINTR) continue;
  }
  std::lock_guard<std::mutex> threads_;
  const int descriptor_;
};

Rendezvous::Rendezvous(std::shared_ptr<char> memory, RendezvousEntry* entries, int lockDescriptor, bool ownsDescriptor)
    : memory_(std::move(memory)), entries_(entries), descriptor_(lockDescriptor), ownsDescriptor_(ownsDescriptor) {}

Rendezvous::~Rendezvous() {
  if (ownsDescriptor_ && descriptor_ >= 0) close(descriptor_);
}

std::shared_ptr<Rendezvous> Rendezvous::own(RendezvousAddress& address, std::string& problem) {
  struct Own {
    std::mutex mutex;
    std::shared_ptr<Rendezvous> rendezvous;
    RendezvousAddress address = {};
  };
  static Own* own = new Own;
  std::lock_guard lock(own->mutex);
  // A fork child inherits its parent's rendezvous, but needs its own.
  if (!own->rendezvous || own->address.process != getpid()) {
    const uint64_t name = randomNumber();
    const int descriptor = makeMemory(name, kRendezvousBytes, problem);
    if (descriptor < 0) return nullptr;
    auto rendezvous = rendezvousIn(descriptor, true, problem);
    if (!rendezvous) return nullptr;
    own->rendezvous = std::move(rendezvous);
    own->address = {static_cast<int32_t>(getpid()), descriptor, name};
  }
  address = own->address;
  return own->rendezvous;
}

std::shared_ptr<Rendezvous> Rendezvous::at(const RendezvousAddress& address, std::string& problem) {
  const int descriptor = openHeld(address.process, address.descriptor, address.name);
  if (descriptor < 0) {
    problem = "the process that made the unique id (" + std::to_string(address.process) +
              ") has ended, or is not to be seen from here";
    return nullptr;
  }
  return rendezvousIn(descriptor, true, problem);
}

int Rendezvous::open(uint64_t key, size_t bytes, std::string& problem) {
  Lock lock(descriptor_);
  RendezvousEntry* unused = nullptr;
  for (size_t index = 0; index < kMaxEntries; ++index) {
    RendezvousEntry& entry = entries_[index];
    if (entry.key == 0 && unused == nullptr) unused = &entry;
    if (entry.key != key) continue;
    const int descriptor = openHeld(entry.process, entry.descriptor, key);
    if (descriptor < 0) {
      problem = "the process of the first rank (" + std::to_string(entry.process) + ") has ended, or has given up";
      return -1;
    }
    struct stat now;
    if (fstat(descriptor, &now) == 0 &&
        (static_cast<size_t>(now.st_size) >= bytes || ftruncate(descriptor, static_cast<off_t>(bytes)) == 0)) {
      return descriptor;
    }
    problem = because("shared memory cannot be sized", errno);
    close(descriptor);
    return -1;
  }
  // An entry whose file no process holds was abandoned by its ranks.
  for (size_t index = 0; index < kMaxEntries && unused == nullptr; ++index) {
    RendezvousEntry& entry = entries_[index];
    const int held = openHeld(entry.process, entry.descriptor, entry.key);
    if (held < 0) unused = &entry;
    else close(held);
  }
  if (unused == nullptr) {
    problem = "more than " + std::to_string(kMaxEntries) + " communicators are being initialized at once";
    return -1;
  }
  const int descriptor = makeMemory(key, bytes, problem);
  if (descriptor >= 0) *unused = {key, static_cast<int32_t>(getpid()), descriptor};
  return descriptor;
}

void Rendezvous::forget(uint64_t key) {
  Lock lock(descriptor_);
  for (size_t index = 0; index < kMaxEntries; ++index) {
    if (entries_[index].key == key) entries_[index] = {};
  }
}

}  // namespace shoal::nccl
