#include "sharedfile.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace shoal {

namespace {

constexpr char kMagic[16] = "shoal-sim-file1";
constexpr size_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

struct Trailer {
  char magic[16];
  uint32_t content;
  uint32_t unused;
  uint64_t size;
  unsigned char label[SharedFile::kLabelBytes];
};

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

std::shared_ptr<SharedFile> SharedFile::create(Content content, size_t bytes, const void* label, size_t labelBytes) {
  std::shared_ptr<SharedFile> file(new SharedFile);
  file->descriptor_ = memfd_create("shoal-sim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file->descriptor_ < 0) fail("memfd_create");
  file->content_ = content;
  file->size_ = (bytes + kPage - 1) / kPage * kPage;
  Trailer trailer = {};
  memcpy(trailer.magic, kMagic, sizeof kMagic);
  trailer.content = static_cast<uint32_t>(content);
  trailer.size = file->size_;
  memcpy(trailer.label, label, std::min(labelBytes, sizeof trailer.label));
  memcpy(file->label_, trailer.label, sizeof trailer.label);
  if (ftruncate(file->descriptor_, static_cast<off_t>(file->size_ + kPage)) != 0) fail("ftruncate");
  if (!file->write(file->size_, &trailer, sizeof trailer)) fail("pwrite");
  if (fcntl(file->descriptor_, F_ADD_SEALS, kSeals) != 0) fail("F_ADD_SEALS");
  struct stat status;
  if (fstat(file->descriptor_, &status) != 0) fail("fstat");
  file->identity_ = {status.st_dev, status.st_ino};
  return file;
}

std::shared_ptr<SharedFile> SharedFile::open(int descriptor) {
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  // Only a sealed file keeps its size. Another process could shrink an unsealed file under the mapping.
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return nullptr;
  const auto length = static_cast<size_t>(status.st_size);
  Trailer trailer;
  if (length < kPage ||
      pread(descriptor, &trailer, sizeof trailer, static_cast<off_t>(length - kPage)) != sizeof trailer)
    return nullptr;
  if (memcmp(trailer.magic, kMagic, sizeof kMagic) != 0 || trailer.size != length - kPage) return nullptr;
  std::shared_ptr<SharedFile> file(new SharedFile);
  file->descriptor_ = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  if (file->descriptor_ < 0) fail("F_DUPFD_CLOEXEC");
  file->content_ = static_cast<Content>(trailer.content);
  file->size_ = trailer.size;
  file->identity_ = {status.st_dev, status.st_ino};
  memcpy(file->label_, trailer.label, sizeof trailer.label);
  return file;
}

SharedFile::~SharedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

int SharedFile::duplicate() const {
  const int copy = fcntl(descriptor_, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) fail("F_DUPFD_CLOEXEC");
  return copy;
}

void* SharedFile::map(size_t offset, size_t length, int protection, void* at) const {
  void* mapped = mmap(at, length, protection, MAP_SHARED | MAP_NORESERVE | (at != nullptr ? MAP_FIXED : 0), descriptor_,
                      static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) fail("mmap");
  return mapped;
}

bool SharedFile::write(size_t offset, const void* data, size_t length) const {
  const char* from = static_cast<const char*>(data);
  while (length != 0) {
    const ssize_t written = pwrite(descriptor_, from, length, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    offset += static_cast<size_t>(written);
    length -= static_cast<size_t>(written);
  }
  return true;
}

void SharedFile::discard(size_t offset, size_t length) const {
  // This only saves memory. If the file system cannot punch holes, the pages stay.
  if (length != 0)
    (void)fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(length));
}

}  // namespace shoal
