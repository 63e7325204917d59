// Memory as a file without a name. It can be mapped several times and passed to other processes, and it is freed with
// its last user. The file is sealed, so it cannot shrink under a mapping. A label after the memory describes the
// content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shoal {

// The kinds of content.
enum class Content : uint32_t { physical = 1, pool = 2, multicast = 3, event = 4, arena = 5 };

class SharedFile {
 public:
  static constexpr size_t kLabelBytes = 256;

  // Throws std::system_error if the system has no memory or no descriptor left.
  static std::shared_ptr<SharedFile> create(Content content, size_t bytes, const void* label, size_t labelBytes);
  // Duplicates the descriptor. Returns null if it is closed or is not a file of this kind.
  static std::shared_ptr<SharedFile> open(int descriptor);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  // Returns a new descriptor of the same memory. The caller closes it. Throws std::system_error.
  int duplicate() const;
  // Maps a part of the file, at a reserved address or anywhere. Throws std::system_error.
  void* map(size_t offset, size_t length, int protection, void* at = nullptr) const;
  // Writes without a mapping. Returns false if the system refuses.
  bool write(size_t offset, const void* data, size_t length) const;
  // Returns pages to the system. They read as zero afterwards.
  void discard(size_t offset, size_t length) const;

  int descriptor() const { return descriptor_; }
  Content content() const { return content_; }
  size_t size() const { return size_; }
  const void* label() const { return label_; }
  // Equal for all descriptors of the same memory.
  struct Identity {
    uint64_t device, inode;
    bool operator<(const Identity& other) const {
      return inode != other.inode ? inode < other.inode : device < other.device;
    }
  };
  Identity identity() const { return identity_; }

 private:
  SharedFile() = default;
  int descriptor_ = -1;
  Content content_ = Content::physical;
  size_t size_ = 0;
  Identity identity_ = {};
  alignas(16) unsigned char label_[kLabelBytes] = {};
};

}  // namespace shoal
