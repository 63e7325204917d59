#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../shared/timeout.h"
#include "report.h"

namespace shoal::nvshmem {

namespace {

constexpr off_t kLocksAt = off_t{1} << 40;  // beyond the data, because locks need no bytes at their offsets

struct flock lockOf(int pe) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kLocksAt + pe;
  lock.l_len = 1;
  return lock;
}

std::string because(const char* what) { return std::string(what) + ": " + strerror(errno); }

}  // namespace

uint64_t timeoutNanoseconds() {
  return shoal::timeoutNanoseconds([](const char* text) { report("%s", text); });
}

int Control::createFile(std::string& problem) {
  const int file = memfd_create("shoal-nvshmem", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Sealed, so that no process can shrink the file while others map it.
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0 ||
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    problem = because("no shared memory");
    if (file >= 0) close(file);
    return -1;
  }
  return file;
}

std::shared_ptr<Control> Control::open(int file, std::string& problem) {
  struct stat facts;
  if (fstat(file, &facts) != 0 || facts.st_size != static_cast<off_t>(sizeof(Shared))) {
    problem = "what the other process gave is not the memory of a job";
    return nullptr;
  }
  std::shared_ptr<Control> control(new Control);
  // A lock belongs to an open file description, so every process opens the file itself.
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  control->descriptor_ = ::open(path, O_RDWR | O_CLOEXEC);
  if (control->descriptor_ < 0) {
    problem = because("the memory of the job cannot be opened");
    return nullptr;
  }
  void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, control->descriptor_, 0);
  if (at == MAP_FAILED) {
    problem = because("the memory of the job cannot be mapped");
    return nullptr;
  }
  control->shared_ = static_cast<Shared*>(at);
  return control;
}

Control::~Control() {
  if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
  if (descriptor_ >= 0) close(descriptor_);
}

bool Control::lockPe(int pe) {
  struct flock lock = lockOf(pe);
  return fcntl(descriptor_, F_OFD_SETLK, &lock) == 0;
}

bool Control::isPeAlive(int pe) const {
  struct flock lock = lockOf(pe);
  return fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void Control::fail(const std::string& text) {
  if (shared_->isFailing.exchange(1) != 0) return;
  snprintf(shared_->failure, sizeof shared_->failure, "%s", text.c_str());
  shared_->hasFailed = 1;
  futexWakeAll(shared_->attached);
  for (TeamSlot& team : shared_->teams) {
    if (team.size.load() != 0) futexWakeAll(team.doorbell);
  }
  for (PeSlot& pe : shared_->pes) futexWakeAll(pe.doorbell);
}

}  // namespace shoal::nvshmem
