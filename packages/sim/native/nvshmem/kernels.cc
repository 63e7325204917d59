#include "kernels.h"

#include <cstddef>
#include <cstring>

namespace shoal::nvshmem {

namespace {

// Kernels can use this many teams, predefined teams included.
constexpr int kMostTeams = NVSHMEM_TEAMS_MIN + 64;

// Lengths in 64-bit words. The device library expects this much room per team: two synchronization areas, the scratch
// space of reductions, ten areas for broadcasts and two for all-to-alls.
constexpr uint64_t kSyncWords = 27648;
constexpr uint64_t kScratchBytes = 512 << 10;
constexpr uint64_t kWordsOfTeam = 2 * 2 * kSyncWords + kScratchBytes / 8 + 10 * kSyncWords + 2 * kSyncWords;

struct Parameters {
  int version, barrierRadix, groupBarrierRadix, exchangeRadix, broadcastRadix, broadcastAlgorithm, reduceAlgorithm;
  uint64_t gatherThreshold, gatherMulticastThreshold, scratchBytes;
  int gatherAlgorithm;
  uint64_t scatterThreshold;
  int scatterAlgorithm, maximumAlgorithm;
  uint64_t gather128Threshold, reduceThreshold;
  char rest[416];
};
static_assert(sizeof(Parameters) == 512);

struct State {
  int version, pe, size, peOfNode, sizeOfNode, distribution, proxy, atomics, connectivity;
  bool isProxyOrdered, areAtomicsCompleteOnQuiet;
  void* heap;
  uint64_t heapBytes;
  void **bases, **remoteBases;
  bool heapKind, isRail;
  uint32_t leastAtomic;
  void *timeout, *firstOfAny;
  void** teams;
  void *sync, *counters;
  Parameters parameters;
  uint64_t channels[15];
  int *exitRequest, *exitStatus;
  bool hasIbgda, isInitialised, isBootstrapped;
};
static_assert(sizeof(State) == 776 && offsetof(State, channels) == 632 && offsetof(State, exitRequest) == 752);

struct TeamState {
  int version, pe, start, stride, size, index;
  nvshmem_team_config_t config;
  long configMask;
  void* nccl;
  struct {
    int version, to;
    void *from, *neighbours;
    int count, phases;
    char rest[32];
  } exchange;
  uint64_t reductions;
  uint32_t flag;
  uint64_t allToAllRoom[2], allToAlls, broadcasts, broadcastOffset, gathers;
  uint32_t gatherFlag;
  bool areConnected, isNode;
  nvshmem_team_t node;
  bool isSamePe;
  nvshmem_team_t samePe;
  void *multicast, *multicastBase;
  nvshmem_team_t copies[128];
  int* pes;  // the PE of each member, followed by the member index of each PE
};
static_assert(sizeof(TeamState) == 792 && offsetof(TeamState, pes) == 784);

constexpr int versionOf(size_t bytes) { return (1 << 16) + static_cast<int>(bytes); }

// The layout of this PE's memory, in this order.
struct Places {
  uint64_t bases, teams, counters, own, states, stateBytes, bytes;
  explicit Places(int size) {
    const auto pes = static_cast<uint64_t>(size);
    bases = 0;
    teams = bases + 8 * pes;
    counters = teams + 8 * kMostTeams;
    own = counters + 16 * kMostTeams;  // 64 bytes of a timeout, then four words
    states = own + 96;
    stateBytes = sizeof(TeamState) + 2 * sizeof(int) * pes;
    bytes = states + stateBytes * kMostTeams;
  }
};

}  // namespace

void KernelState::close() {
  teams_.watch(nullptr);
  if (memory_ != 0) cuMemFree_v2(memory_);
  memory_ = 0;
}

bool KernelState::open(std::string& problem) {
  const Places places(job_.size);
  constexpr uint64_t syncBytes = 8 * kWordsOfTeam * kMostTeams;
  sync_ = heap_.allocate("nvshmemx_cumodule_init", syncBytes, 0);
  if (sync_ == nullptr) {
    problem = "no symmetric memory for what kernels of " + std::to_string(kMostTeams) + " teams tell each other, " +
              std::to_string(syncBytes) + " bytes";
    return false;
  }
  CUdeviceptr memory = 0;
  if (cuMemAlloc_v2(&memory, places.bytes) != CUDA_SUCCESS) {
    problem = "no memory for the state of kernels, " + std::to_string(places.bytes) + " bytes";
    return false;
  }
  auto* base = reinterpret_cast<char*>(memory);
  memset(base, 0, places.bytes);
  for (int pe = 0; pe < job_.size; ++pe) reinterpret_cast<void**>(base + places.bases)[pe] = heap_.at(pe, 0);
  for (int index = 0; index < 2 * kMostTeams; ++index) reinterpret_cast<int64_t*>(base + places.counters)[index] = 1;
  memory_ = memory;
  teams_.watch([this](const Team& team, bool isThere) { change(team, isThere); });
  return true;
}

void KernelState::change(const Team& team, bool isThere) {
  const int index = team.handle;
  if (index < 0 || index >= kMostTeams) return;
  const Places places(job_.size);
  auto* base = reinterpret_cast<char*>(memory_);
  auto** entry = reinterpret_cast<void**>(base + places.teams) + index;
  if (!isThere) {
    // Reset the state of the number, so that the next team starts equally on all of its members.
    *entry = nullptr;
    memset(static_cast<char*>(sync_) + 8 * kWordsOfTeam * static_cast<uint64_t>(index), 0, 8 * kWordsOfTeam);
    for (int at = 0; at < 2; ++at) reinterpret_cast<int64_t*>(base + places.counters)[2 * index + at] = 1;
    return;
  }
  const auto& members = team.group.members;
  const auto count = members.size();
  auto* state = reinterpret_cast<TeamState*>(base + places.states + places.stateBytes * static_cast<uint64_t>(index));
  *state = TeamState{};
  state->version = (3 << 16) + static_cast<int>(sizeof *state);
  state->pe = team.group.own;
  state->size = static_cast<int>(count);
  state->index = index;
  state->config = team.config;
  state->start = members[0];
  state->stride = count < 2 ? 1 : members[1] - members[0];
  for (size_t at = 2; at < count; ++at) {
    if (members[at] - members[at - 1] != state->stride) state->stride = -1;
  }
  // This number of exchange phases never fits, so the device library reduces segment by segment instead.
  state->exchange.to = -1;
  state->exchange.phases = 1 << 20;
  state->flag = state->gatherFlag = 1;
  state->areConnected = true;
  state->isNode = count == static_cast<size_t>(job_.size);
  state->node = state->samePe = NVSHMEM_TEAM_INVALID;
  state->pes = reinterpret_cast<int*>(state + 1);
  for (int pe = 0; pe < job_.size; ++pe) state->pes[count + static_cast<size_t>(pe)] = -1;
  for (size_t at = 0; at < count; ++at) {
    state->pes[at] = members[at];
    state->pes[count + static_cast<size_t>(members[at])] = static_cast<int>(at);
  }
  *entry = state;
}

bool KernelState::tell(CUdeviceptr variable, size_t bytes, std::string& problem) {
  if (bytes != sizeof(State)) {
    problem = std::string(kDeviceStateName) + " has " + std::to_string(bytes) + " bytes, not the " +
              std::to_string(sizeof(State)) + " of version 3.4.5";
    return false;
  }
  std::lock_guard lock(mutex_);
  if (memory_ == 0 && !open(problem)) return false;
  const Places places(job_.size);
  auto* base = reinterpret_cast<char*>(memory_);
  auto* own = base + places.own;
  State state = {};
  state.version = versionOf(sizeof state);
  state.pe = state.peOfNode = job_.pe;
  state.size = state.sizeOfNode = job_.size;
  state.connectivity = 1;  // every GPU reaches every GPU's memory, also with atomics
  state.isProxyOrdered = state.areAtomicsCompleteOnQuiet = true;
  state.heap = heap_.at(job_.pe, 0);
  state.heapBytes = heap_.reserved();
  state.bases = reinterpret_cast<void**>(base + places.bases);
  state.timeout = own;
  state.firstOfAny = own + 64;
  state.teams = reinterpret_cast<void**>(base + places.teams);
  state.sync = sync_;
  state.counters = base + places.counters;
  state.parameters = Parameters{versionOf(sizeof(Parameters)) + (1 << 16), 2, 2, 2, 2, 0, 0};
  state.parameters.scratchBytes = kScratchBytes;
  state.parameters.maximumAlgorithm = 1;
  state.exitRequest = reinterpret_cast<int*>(own + 72);
  state.exitStatus = reinterpret_cast<int*>(own + 80);
  state.isInitialised = state.isBootstrapped = true;
  if (cuMemcpyHtoD_v2(variable, &state, sizeof state) == CUDA_SUCCESS) return true;
  problem = std::string(kDeviceStateName) + " cannot be written";
  return false;
}

}  // namespace shoal::nvshmem
