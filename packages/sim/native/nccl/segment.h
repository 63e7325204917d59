// The memory that the ranks of a communicator share. All-zero is its valid first state, so whoever comes first can
// create it and nobody has to wait for an initialisation. It may lie at another address in every process.
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

// A rank that has revoked its communicator takes part in no operation any more, but in making new communicators.
enum class RankState : uint32_t { absent = 0, attached = 1, left = 2, aborted = 3, revoked = 4 };

// What a rank says about the collective it is in; all but the addresses must agree.
struct Description {
  uint32_t kind;
  uint32_t type;
  uint32_t reducer;
  int32_t root;
  uint64_t count;
  uint64_t scalar;
  const void* send;  // addresses mean something only inside one process
  void* recv;
};

struct alignas(64) RankSlot {
  std::atomic<uint32_t> state;
  std::atomic<int32_t> device;
  std::atomic<int32_t> process;               // for messages
  std::atomic<uint32_t> doorbell;             // rung when a channel of this rank moved
  std::atomic<uint64_t> processToken;         // the same only within one process
  std::atomic<uint32_t> spoken;               // exchanges in which this rank has said its words
  Description descriptions[2];                // by parity of the step
  alignas(16) char words[2][kExchangeBytes];  // by parity of the exchange
};

// From one rank to another. Within a process it passes addresses and counts messages; between processes it is a ring of
// bytes and counts those.
struct alignas(64) Channel {
  std::atomic<uint64_t> written;
  std::atomic<uint64_t> read;
  const void* address;
  uint64_t bytes;
  std::atomic<uint64_t> signals;  // one-sided ones that were sent so far
};

struct alignas(64) Control {
  std::atomic<uint32_t> ranks;
  std::atomic<uint32_t> identifiers;  // how many unique ids the ranks came with
  std::atomic<uint32_t> attached;     // also the word that ranks wait on until all are there
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> generation;  // of the barrier
  std::atomic<uint32_t> spoken;      // changes whenever a rank has said something in an exchange
  std::atomic<uint32_t> isFailing;   // whoever sets it writes the text and then the failure
  std::atomic<uint32_t> failure;     // an ncclResult_t
  std::atomic<uint32_t> working;     // ranks that may be touching another's buffers
  std::atomic<uint32_t> suspended;   // ranks that have given their memory back
  char failureText[256];
};

class Segment {
 public:
  // For ranks of one process.
  static std::shared_ptr<Segment> anonymous(int ranks, std::string& problem);
  // Connects to the other ranks under a key of a rendezvous, making the segment if need be. Each call has a descriptor
  // of its own; ranks of one process share the mapping.
  static std::shared_ptr<Segment> join(std::shared_ptr<Rendezvous> rendezvous, uint64_t key, int ranks,
                                       std::string& problem);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // All are there: nobody needs to find it any more.
  void conclude();
  // Takes the memory for staging, so that too little memory is an error and not a SIGBUS.
  bool reserveStaging(std::string& problem);
  // Gives the memory for staging back to the system; what was in it is lost.
  void releaseStaging();

  // Each rank holds a lock for as long as its process lives; the kernel lets go of it even when the process is killed.
  bool lockRank(int rank);
  bool isRankLocked(int rank) const;
  bool isShared() const { return descriptor_ >= 0; }

  // Where ranks connect that make a new communicator from the one of this segment.
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
  // What a rank's share of the memory is: for staging, which can be given back, and for all else.
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
  std::shared_ptr<Rendezvous> found_;  // where it was found, until it is concluded
  std::unique_ptr<Rendezvous> children_;
};

}  // namespace shoal::nccl
