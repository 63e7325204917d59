#include "segment.h"
#include "problem.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

namespace shoal::nccl {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStagingBudget = size_t{8} << 20;
constexpr size_t kRingBudget = size_t{8} << 20;
constexpr off_t kLocksAt = off_t{1} << 40;  // beyond the data, because locks need no bytes at their offsets

static_assert(sizeof(Control) <= kPage);

size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::shared_ptr<char> map(size_t bytes, int flags, int descriptor) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (at == MAP_FAILED) return nullptr;
  return std::shared_ptr<char>(static_cast<char*>(at), [bytes](char* mapped) { munmap(mapped, bytes); });
}

// Returns one mapping for all ranks of this process in the same shared memory.
std::shared_ptr<char> mapOnce(size_t bytes, int descriptor) {
  static std::mutex* mutex = new std::mutex;
  static auto* known = new std::map<std::pair<dev_t, ino_t>, std::pair<std::weak_ptr<char>, size_t>>;
  struct stat file;
  if (fstat(descriptor, &file) != 0) return nullptr;
  std::lock_guard lock(*mutex);
  for (auto entry = known->begin(); entry != known->end();) {
    entry = entry->second.first.expired() ? known->erase(entry) : std::next(entry);
  }
  auto found = known->find({file.st_dev, file.st_ino});
  if (found != known->end() && found->second.second >= bytes) {
    if (auto mapping = found->second.first.lock()) return mapping;
  }
  auto mapping = map(bytes, MAP_SHARED, descriptor);
  if (mapping) (*known)[{file.st_dev, file.st_ino}] = {mapping, bytes};
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

size_t Segment::stagingAt() const {
  return pages(channelsAt() + static_cast<size_t>(ranks_ * ranks_) * sizeof(Channel));
}

std::shared_ptr<Segment> Segment::anonymous(int ranks, std::string& problem) {
  std::shared_ptr<Segment> segment(new Segment(ranks));
  segment->mapping_ = map(segment->stagingAt(), MAP_PRIVATE | MAP_ANONYMOUS, -1);  // ranks of one process stage nothing
  if (!segment->mapping_) {
    problem = because("no memory for a communicator", errno);
    return nullptr;
  }
  segment->base_ = segment->mapping_.get();
  segment->key_ = randomNumber();
  segment->children_ = std::make_unique<Rendezvous>(
      segment->mapping_, reinterpret_cast<RendezvousEntry*>(segment->base_ + rendezvousAt()), -1, false);
  segment->control().ranks = static_cast<uint32_t>(ranks);
  return segment;
}

std::shared_ptr<Segment> Segment::join(std::shared_ptr<Rendezvous> rendezvous, uint64_t key, int ranks,
                                       std::string& problem) {
  std::shared_ptr<Segment> segment(new Segment(ranks));
  const int descriptor = rendezvous->open(key, segment->totalBytes(), problem);
  if (descriptor < 0) return nullptr;
  segment->descriptor_ = descriptor;
  segment->key_ = key;
  segment->found_ = std::move(rendezvous);
  if (const int error = posix_fallocate(descriptor, 0, static_cast<off_t>(segment->stagingAt()))) {
    problem = because("there is too little shared memory", error);
    return nullptr;
  }
  segment->mapping_ = mapOnce(segment->totalBytes(), descriptor);
  if (!segment->mapping_) {
    problem = because("shared memory cannot be mapped", errno);
    return nullptr;
  }
  segment->base_ = segment->mapping_.get();
  segment->children_ = std::make_unique<Rendezvous>(
      segment->mapping_, reinterpret_cast<RendezvousEntry*>(segment->base_ + rendezvousAt()), descriptor, false);
  return segment;
}

Segment::~Segment() {
  children_.reset();
  if (descriptor_ >= 0) close(descriptor_);
}

void Segment::conclude() {
  std::lock_guard lock(mutex_);
  if (found_) found_->forget(key_);
  found_.reset();
}

bool Segment::reserveStaging(std::string& problem) {
  const int error = posix_fallocate(descriptor_, 0, static_cast<off_t>(totalBytes()));
  if (error != 0) problem = because("there is too little shared memory", error);
  return error == 0;
}

void Segment::releaseStaging() {
  if (descriptor_ < 0) return;
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(stagingAt()),
            static_cast<off_t>(ringsAt() - stagingAt()));
}

bool Segment::lockRank(int rank) {
  struct flock lock = lockOf(rank, F_WRLCK);
  return fcntl(descriptor_, F_OFD_SETLK, &lock) == 0;
}

bool Segment::isRankLocked(int rank) const {
  struct flock lock = lockOf(rank, F_WRLCK);
  return fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace shoal::nccl
