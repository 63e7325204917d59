#include "segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

namespace shoal::nccl {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStagingBudget = size_t{8} << 20;
constexpr size_t kRingBudget = size_t{8} << 20;
constexpr off_t kLocksAt = off_t{1} << 40;  // beyond the data: locks need no bytes under them
constexpr time_t kAbandonedAfterSeconds = 60;

// The names that this process still has to remove.
struct Names {
  std::mutex mutex;
  std::set<std::string> pending;
};
Names& names() {
  static Names* shared = new Names;
  return *shared;
}

// A process that ends while it waits for other ranks leaves no name behind.
__attribute__((destructor)) void removeNames() {
  std::lock_guard lock(names().mutex);
  for (auto& name : names().pending) shm_unlink(("/" + name).c_str());
  names().pending.clear();
}

size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::string because(const char* what, int error) { return std::string(what) + ": " + strerror(error); }

std::shared_ptr<char> map(size_t bytes, int flags, int descriptor) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (at == MAP_FAILED) return nullptr;
  return std::shared_ptr<char>(static_cast<char*>(at), [bytes](char* mapped) { munmap(mapped, bytes); });
}

// One mapping for all ranks of this process that meet under a name. Names are never used twice.
std::shared_ptr<char> mapNamed(const std::string& name, size_t bytes, int descriptor) {
  static std::mutex* mutex = new std::mutex;
  static auto* known = new std::map<std::string, std::pair<std::weak_ptr<char>, size_t>>;
  std::lock_guard lock(*mutex);
  for (auto entry = known->begin(); entry != known->end();) {
    entry = entry->second.first.expired() ? known->erase(entry) : std::next(entry);
  }
  auto found = known->find(name);
  if (found != known->end() && found->second.second >= bytes) {
    if (auto mapping = found->second.first.lock()) return mapping;
  }
  auto mapping = map(bytes, MAP_SHARED, descriptor);
  if (mapping) (*known)[name] = {mapping, bytes};
  return mapping;
}

struct flock lockOf(int rank, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = kLocksAt + rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

size_t Segment::stagingBytes() const {
  const size_t share = kStagingBudget / static_cast<size_t>(ranks_ * 2);
  return std::min<size_t>(pages(share), size_t{1} << 20);
}

size_t Segment::ringBytes() const {
  const size_t share = kRingBudget / static_cast<size_t>(ranks_ * ranks_);
  return std::min<size_t>(std::max(pages(share), kPage), size_t{256} << 10);
}

size_t Segment::stagingAt() const { return pages(channelsAt() + static_cast<size_t>(ranks_ * ranks_) * sizeof(Channel)); }

std::shared_ptr<Segment> Segment::anonymous(int ranks, std::string& problem) {
  std::shared_ptr<Segment> segment(new Segment(ranks));
  segment->mapping_ = map(segment->stagingAt(), MAP_PRIVATE | MAP_ANONYMOUS, -1);  // nothing is staged within a process
  if (!segment->mapping_) {
    problem = because("no memory for a communicator", errno);
    return nullptr;
  }
  segment->base_ = segment->mapping_.get();
  segment->control().ranks = static_cast<uint32_t>(ranks);
  return segment;
}

std::shared_ptr<Segment> Segment::named(const std::string& name, int ranks, std::string& problem) {
  std::shared_ptr<Segment> segment(new Segment(ranks));
  const int descriptor = shm_open(("/" + name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    problem = because("shared memory cannot be opened", errno);
    return nullptr;
  }
  segment->descriptor_ = descriptor;
  segment->name_ = name;
  {
    std::lock_guard lock(names().mutex);
    names().pending.insert(name);
  }
  // Grows only: ranks that were told different sizes of the communicator are told apart below.
  struct stat now;
  if (fstat(descriptor, &now) != 0 || (static_cast<size_t>(now.st_size) < segment->totalBytes() &&
                                       ftruncate(descriptor, static_cast<off_t>(segment->totalBytes())) != 0)) {
    problem = because("shared memory cannot be sized", errno);
    return nullptr;
  }
  if (const int error = posix_fallocate(descriptor, 0, static_cast<off_t>(segment->stagingAt()))) {
    problem = because("shared memory is full", error);
    return nullptr;
  }
  segment->mapping_ = mapNamed(name, segment->totalBytes(), descriptor);
  if (!segment->mapping_) {
    problem = because("shared memory cannot be mapped", errno);
    return nullptr;
  }
  segment->base_ = segment->mapping_.get();
  return segment;
}

Segment::~Segment() {
  // Nobody has come: this rank was refused before it could.
  if (base_ != nullptr && isNamed() && control().attached.load() == 0) unlink();
  if (descriptor_ >= 0) close(descriptor_);
}

void Segment::unlink() {
  std::lock_guard lock(names().mutex);
  if (names().pending.erase(name_) != 0) shm_unlink(("/" + name_).c_str());
}

bool Segment::reserveStaging(std::string& problem) {
  const int error = posix_fallocate(descriptor_, 0, static_cast<off_t>(totalBytes()));
  if (error != 0) problem = because("shared memory is full", error);
  return error == 0;
}

bool Segment::lockRank(int rank) {
  struct flock lock = lockOf(rank, F_WRLCK);
  return fcntl(descriptor_, F_OFD_SETLK, &lock) == 0;
}

bool Segment::isRankLocked(int rank) const {
  struct flock lock = lockOf(rank, F_WRLCK);
  return fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void removeAbandonedSegments() {
  DIR* folder = opendir("/dev/shm");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    if (strncmp(entry->d_name, kSegmentPrefix, sizeof kSegmentPrefix - 1) != 0) continue;
    const std::string name = std::string("/") + entry->d_name;
    const int descriptor = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0) continue;
    struct stat file;
    struct flock lock = lockOf(0, F_WRLCK);
    lock.l_len = kMaxRanks;
    const bool isOld = fstat(descriptor, &file) == 0 && time(nullptr) - file.st_mtime > kAbandonedAfterSeconds;
    if (isOld && fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK) shm_unlink(name.c_str());
    close(descriptor);
  }
  closedir(folder);
}

}  // namespace shoal::nccl
