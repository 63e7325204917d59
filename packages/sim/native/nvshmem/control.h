// The memory that the PEs of a job share: an anonymous file, passed between them. All zeroes is its valid initial
// state. Its address may differ between processes.
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

// A PE's description of its current call. Addresses are offsets in the symmetric heap.
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
  std::atomic<uint32_t> doorbell;  // rung when another PE has changed a word of this PE's heap
  char exchange[64];               // the name under which other PEs fetch its descriptors
};

// The place where the members of a team synchronize. Members are numbered by their index in the team.
struct alignas(64) TeamSlot {
  std::atomic<uint32_t> isTaken;
  std::atomic<uint32_t> size;
  std::atomic<uint32_t> joined;
  std::atomic<uint32_t> left;
  std::atomic<uint32_t> doorbell;  // rung when a member arrives
  std::atomic<uint64_t> uniqueId;
  std::atomic<int32_t> members[kMaxPes];  // their PE numbers plus 1
  std::atomic<uint64_t>
      // number of arrivals of each member; the nth synchronization is complete when all counts are n
      arrivals[kMaxPes];
  Description descriptions[kMaxPes];
};

// Slots of the job's own synchronizations and of the predefined teams come before the slots of created teams.
constexpr int kStartSlot = 0;
// for allocations; separate from the world team, so that queued barriers do not interfere
constexpr int kManagementSlot = 1;
constexpr int kWorldSlot = 2;
constexpr int kSharedSlot = 3;
constexpr int kNodeSlot = 4;
constexpr int kLeadersSlot = 5;
constexpr int kAloneSlots = 6;                           // one per PE
constexpr int kSameDeviceSlots = kAloneSlots + kMaxPes;  // indexed by the first PE of the device
constexpr int kMadeSlots = kSameDeviceSlots + kMaxPes;
constexpr int kSlots = kMadeSlots + kMaxMadeTeams;

struct Shared {
  std::atomic<uint32_t> size;       // number of PEs
  std::atomic<uint32_t> attached;   // number of PEs that have attached; rung
  std::atomic<uint32_t> teamLock;   // held while a PE looks for a team by its id
  std::atomic<uint32_t> isFailing;  // the PE that sets it writes the text and then `hasFailed`
  std::atomic<uint32_t> hasFailed;
  char failure[256];
  PeSlot pes[kMaxPes];
  TeamSlot teams[kSlots];
};

class Control {
 public:
  // The caller keeps `file`; this object has its own descriptor.
  static std::shared_ptr<Control> open(int file, std::string& problem);
  static int createFile(std::string& problem);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  Shared& shared() const { return *shared_; }
  PeSlot& pe(int index) const { return shared_->pes[index]; }
  TeamSlot& team(int slot) const { return shared_->teams[slot]; }

  // Each PE holds a file lock while its process lives. The kernel releases it even if the process is killed.
  bool lockPe(int pe);
  bool isPeAlive(int pe) const;

  // Records a failure for all PEs. The first failure of any PE wins.
  void fail(const std::string& text);
  const char* failure() const { return shared_->hasFailed.load() != 0 ? shared_->failure : nullptr; }

 private:
  Control() = default;
  Shared* shared_ = nullptr;
  int descriptor_ = -1;
};

// From SHOAL_SIM_TIMEOUT_SECONDS; 60 seconds by default. 0 waits for ever.
uint64_t timeoutNanoseconds();

}  // namespace shoal::nvshmem
