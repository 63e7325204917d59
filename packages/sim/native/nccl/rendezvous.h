// The place where the ranks of a communicator find their shared memory. Nothing has a name in the file system: a
// process holds the memory by a descriptor, and others open it through /proc. The memory is freed with the last
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace shoal::nccl {

// The memory for a key, as a descriptor of a process.
struct RendezvousEntry {
  uint64_t key;  // 0: unused
  int32_t process;
  int32_t descriptor;
};

constexpr size_t kMaxEntries = 256;
constexpr size_t kRendezvousBytes = kMaxEntries * sizeof(RendezvousEntry);

// The information that another process needs to open a rendezvous.
struct RendezvousAddress {
  int32_t process;
  int32_t descriptor;
  uint64_t name;
};

class Rendezvous {
 public:
  // The rendezvous of this process, created on first use. Returns null and a reason if that fails.
  static std::shared_ptr<Rendezvous> own(RendezvousAddress& address, std::string& problem);
  // The rendezvous of another process. Returns null and a reason, for example if the process has ended.
  static std::shared_ptr<Rendezvous> at(const RendezvousAddress& address, std::string& problem);
  // A rendezvous inside other memory. `lockDescriptor` is a file that its processes share, or -1 within one process.
  Rendezvous(std::shared_ptr<char> memory, RendezvousEntry* entries, int lockDescriptor, bool ownsDescriptor);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // A descriptor of the memory for the key, of at least `bytes`. The first caller creates it. Returns -1 and a reason
  // on failure.
  int open(uint64_t key, size_t bytes, std::string& problem);
  // Removes the key, because all ranks have found the memory.
  void forget(uint64_t key);

 private:
  class Lock;
  const std::shared_ptr<char> memory_;
  RendezvousEntry* const entries_;
  const int descriptor_;
  const bool ownsDescriptor_;
};

uint64_t randomNumber();

}  // namespace shoal::nccl
