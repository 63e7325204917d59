// The memory that the PEs of a job share: an anonymous file that they hand each other. All-zero is its valid first
// state. It may lie at another address in every process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "../shared/futex.h"

namespace shoal::nvshmem {

constexpr int kMaxPes = 64;
constexpr int kMaxMadeTeams = 256;

enum class PeState : uint32_t { absent = 0, attached = 1, left = 2 };

// What a PE says about the call it is in. Addresses are offsets in the symmetric heap.
struct Description {
  uint32_t kind;
  uint32_t type;
  uint32_t operation;
  int32_t root;
  uint64_t count;
  uint64_t destination;
  uint64_t source;
  uint64_t value;
};

struct alignas(64) PeSlot {
  std::atomic<uint32_t> state;
  std::atomic<int32_t> process;
  std::atomic<int32_t> device;
  std::atomic<uint32_t> doorbell;  // rung when somebody changed a word of this PE's heap
  char exchange[64];               // the name under which its descriptors are to be had
};

// Where the members of a team synchronize. Members are counted by their index in the team.
struct alignas(64) TeamSlot {
  std::atomic<uint32_t> isTaken;
  std::atomic<uint32_t> size;
  std::atomic<uint32_t> joined;
  std::atomic<uint32_t> left;
  std::atomic<uint32_t> doorbell;  // rung when a member arrives
  std::atomic<uint64_t> uniqueId;
  std::atomic<int32_t> members[kMaxPes];  // their PE, plus 1
  std::atomic<uint64_t>
      arrivals[kMaxPes];  // how often each has arrived; the nth synchronization is over when all counts are n
  Description descriptions[kMaxPes];
};

// The slots of the job's own synchronizations and of the teams that are there from the start come before those that are
// made.
constexpr int kStartSlot = 0;
constexpr int kManagementSlot = 1;  // allocations: apart from the team of all, so that queued barriers do not matter
constexpr int kWorldSlot = 2;
constexpr int kSharedSlot = 3;
constexpr int kNodeSlot = 4;
constexpr int kLeadersSlot = 5;
constexpr int kAloneSlots = 6;                           // one for each PE
constexpr int kSameDeviceSlots = kAloneSlots + kMaxPes;  // by the first PE of the device
constexpr int kMadeSlots = kSameDeviceSlots + kMaxPes;
constexpr int kSlots = kMadeSlots + kMaxMadeTeams;

struct Shared {
  std::atomic<uint32_t> size;       // how many PEs there are
  std::atomic<uint32_t> attached;   // how many have come; rung
  std::atomic<uint32_t> teamLock;   // held while a team is looked for by its id
  std::atomic<uint32_t> isFailing;  // whoever sets it writes the text and then `hasFailed`
  std::atomic<uint32_t> hasFailed;
  char failure[256];
  PeSlot pes[kMaxPes];
  TeamSlot teams[kSlots];
};

class Control {
 public:
  // The file is the caller's; this keeps a descriptor of its own.
  static std::shared_ptr<Control> open(int file, std::string& problem);
  static int createFile(std::string& problem);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  Shared& shared() const { return *shared_; }
  PeSlot& pe(int index) const { return shared_->pes[index]; }
  TeamSlot& team(int slot) const { return shared_->teams[slot]; }

  // Each PE holds a lock for as long as its process lives; the kernel lets go of it even when the process is killed.
  bool lockPe(int pe);
  bool isPeAlive(int pe) const;

  // The first failure of any PE is everybody's.
  void fail(const std::string& text);
  const char* failure() const { return shared_->hasFailed.load() != 0 ? shared_->failure : nullptr; }

 private:
  Control() = default;
  Shared* shared_ = nullptr;
  int descriptor_ = -1;
};

// 0: wait for ever. SHOAL_SIM_TIMEOUT_SECONDS, else a minute.
uint64_t timeoutNanoseconds();

}  // namespace shoal::nvshmem
