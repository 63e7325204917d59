// Where the ranks of a communicator find the memory that they share. Nothing here has a name in a file system: a
// process holds memory by a descriptor, others open it through /proc, and with the last process the memory is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace shoal::nccl {

// The memory that was made for a key: a descriptor of a process.
struct RendezvousEntry {
  uint64_t key;  // 0: unused
  int32_t process;
  int32_t descriptor;
};

constexpr size_t kMaxEntries = 256;
constexpr size_t kRendezvousBytes = kMaxEntries * sizeof(RendezvousEntry);

// How another process opens a rendezvous.
struct RendezvousAddress {
  int32_t process;
  int32_t descriptor;
  uint64_t name;
};

class Rendezvous {
 public:
  // The rendezvous of this process, made at the first call. Null with a reason when that fails.
  static std::shared_ptr<Rendezvous> own(RendezvousAddress& address, std::string& problem);
  // The rendezvous of a process that may have ended, which is a reason too.
  static std::shared_ptr<Rendezvous> at(const RendezvousAddress& address, std::string& problem);
  // A rendezvous inside other memory. `lockDescriptor` is a file that its processes have in common, -1 within one
  // process.
  Rendezvous(std::shared_ptr<char> memory, RendezvousEntry* entries, int lockDescriptor, bool ownsDescriptor);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // A descriptor of the memory of that key, which whoever comes first makes; it has at least `bytes`. -1 with a reason.
  int open(uint64_t key, size_t bytes, std::string& problem);
  // The key is not needed any more: all who wanted to have come.
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
