// The memory that the ranks of a communicator share. All zeroes is its valid initial state, so the first rank can
// create it without any initialisation to wait for. Its address may differ between processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "rendezvous.h"
#include "shoal/nccl.h"

namespace shoal::nccl {

constexpr int kMaxRanks = 64;
constexpr size_t kExchangeBytes = 256;

// A rank that has revoked its communicator takes part only in making new communicators, not in operations.
enum class RankState : uint32_t { absent = 0, attached = 1, left = 2, aborted = 3, revoked = 4 };

// A rank's description of its current collective. All members except the addresses must agree between ranks.
struct Description {
  uint32_t kind;
  uint32_t type;
  uint32_t reducer;
  int32_t root;
  uint64_t count;
  uint64_t scalar;
  const void* send;  // addresses are only valid within one process
  void* recv;
};

struct alignas(64) RankSlot {
  std::atomic<uint32_t> state;
  std::atomic<int32_t> device;
  std::atomic<int32_t> process;               // for messages only
  std::atomic<uint32_t> doorbell;             // rung when a channel of this rank has moved
  std::atomic<uint64_t> processToken;         // equal only within one process
  std::atomic<uint32_t> spoken;               // number of exchanges in which this rank has contributed
  Description descriptions[2];                // by the parity of the step
  alignas(16) char words[2][kExchangeBytes];  // by the parity of the exchange
};

// A channel from one rank to another. Within a process, it passes addresses and counts messages. Between processes, it
// is a ring of bytes and counts bytes.
struct alignas(64) Channel {
  std::atomic<uint64_t> written;
  std::atomic<uint64_t> read;
  const void* address;
  uint64_t bytes;
  std::atomic<uint64_t> signals;  // number of one-sided signals sent so far
};

struct alignas(64) Control {
  std::atomic<uint32_t> ranks;
  std::atomic<uint32_t> identifiers;  // number of unique ids that the ranks used
  std::atomic<uint32_t> attached;     // ranks also wait on this word until all have attached
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> generation;  // of the barrier
  std::atomic<uint32_t> spoken;      // changes whenever a rank contributes to an exchange
  std::atomic<uint32_t> isFailing;   // the rank that sets it writes the text and then the failure
  std::atomic<uint32_t> failure;     // an ncclResult_t
  std::atomic<uint32_t> working;     // ranks that may be accessing another rank's buffers
  std::atomic<uint32_t> suspended;   // ranks that have suspended
  char failureText[256];
};

class Segment {
 public:
  // For ranks of one process.
  static std::shared_ptr<Segment> anonymous(int ranks, std::string& problem);
  // Connects to the other ranks under a key of a rendezvous, and creates the segment if necessary. Each call has its
  // own descriptor. Ranks of one process share the mapping.
  static std::shared_ptr<Segment> join(std::shared_ptr<Rendezvous> rendezvous, uint64_t key, int ranks,
                                       std::string& problem);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // All ranks have attached, so no rank needs to find the segment any more.
  void conclude();
  // Allocates the staging memory now, so that a lack of memory is an error here and not a SIGBUS later.
  bool reserveStaging(std::string& problem);
  // Returns the staging memory to the system. Its content is lost.
  void releaseStaging();

  // Each rank holds a file lock while its process lives. The kernel releases it even if the process is killed.
  bool lockRank(int rank);
  bool isRankLocked(int rank) const;
  bool isShared() const { return descriptor_ >= 0; }

  // The rendezvous for new communicators made from the communicator of this segment.
  Rendezvous& rendezvous() const { return *children_; }
  uint64_t key() const { return key_; }

  Control& control() const { return *reinterpret_cast<Control*>(base_); }
  RankSlot& slot(int rank) const { return reinterpret_cast<RankSlot*>(base_ + slotsAt())[rank]; }
  Channel& channel(int from, int to) const {
    return reinterpret_cast<Channel*>(base_ + channelsAt())[from * ranks_ + to];
  }
  char* staging(int rank, int parity) const {
    return base_ + stagingAt() + static_cast<size_t>(rank * 2 + parity) * stagingBytes();
  }
  char* ring(int from, int to) const {
    return base_ + ringsAt() + static_cast<size_t>(from * ranks_ + to) * ringBytes();
  }
  size_t stagingBytes() const;
  size_t ringBytes() const;
  // A rank's share of the memory: the staging memory, which can be released, and the rest.
  size_t stagingShare() const { return 2 * stagingBytes(); }
  size_t otherShare() const {
    return stagingAt() / static_cast<size_t>(ranks_) + static_cast<size_t>(ranks_) * ringBytes();
  }

 private:
  explicit Segment(int ranks) : ranks_(ranks) {}
  static size_t rendezvousAt() { return 4096; }
  static size_t slotsAt() { return rendezvousAt() + kRendezvousBytes; }
  size_t channelsAt() const { return slotsAt() + static_cast<size_t>(ranks_) * sizeof(RankSlot); }
  size_t stagingAt() const;
  size_t ringsAt() const { return stagingAt() + static_cast<size_t>(ranks_) * 2 * stagingBytes(); }
  size_t totalBytes() const { return ringsAt() + static_cast<size_t>(ranks_ * ranks_) * ringBytes(); }

  const int ranks_;
  std::shared_ptr<char> mapping_;
  char* base_ = nullptr;
  int descriptor_ = -1;
  uint64_t key_ = 0;
  std::mutex mutex_;
  std::shared_ptr<Rendezvous> found_;  // the rendezvous, until conclude() is called
  std::unique_ptr<Rendezvous> children_;
};

}  // namespace shoal::nccl
