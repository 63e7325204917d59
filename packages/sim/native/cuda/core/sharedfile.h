// Memory as a file without a name: it can be mapped several times and handed to other processes, and it ends with the
// last who holds it. It is sealed, so nobody can shrink it under a mapping; behind the memory lies a label that says
// what it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shoal {

// What a descriptor of ours may hold.
enum class Content : uint32_t { physical = 1, pool = 2, multicast = 3, event = 4, arena = 5 };

class SharedFile {
 public:
  static constexpr size_t kLabelBytes = 256;

  // Throws std::system_error when the system has no memory or no descriptor left.
  static std::shared_ptr<SharedFile> create(Content content, size_t bytes, const void* label, size_t labelBytes);
  // Takes a duplicate of a descriptor; null when it is closed, or no file of this kind.
  static std::shared_ptr<SharedFile> open(int descriptor);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  // A new descriptor for the same memory, for somebody else to close. Throws std::system_error.
  int duplicate() const;
  // Maps a part, at an address (which must be reserved) or anywhere. Throws std::system_error.
  void* map(size_t offset, size_t length, int protection, void* at = nullptr) const;
  // Past the mappings; returns false when the system refuses.
  bool write(size_t offset, const void* data, size_t length) const;
  // Gives pages back to the system; they read as zero then.
  void discard(size_t offset, size_t length) const;

  int descriptor() const { return descriptor_; }
  Content content() const { return content_; }
  size_t size() const { return size_; }
  const void* label() const { return label_; }
  // The same for every descriptor of the same memory.
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
