#include "team.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "report.h"
#include "session.h"

namespace shoal::nvshmem {

namespace {

constexpr uint64_t kNoUniqueId = ~uint64_t{0};

enum Split : uint32_t { strided = 300, twoDimensional };

constexpr nvshmem_team_t handleOf(int slot) { return NVSHMEM_TEAMS_MIN + slot - kMadeSlots; }

size_t mostTeams() {
  static const size_t most = [] {
    const char* text = getenv("NVSHMEM_MAX_TEAMS");
    const long wanted = text == nullptr ? 0 : strtol(text, nullptr, 10);
    return static_cast<size_t>(wanted > 0 ? wanted : 32);
  }();
  return most;
}

bool agree(const std::vector<Description>& all) {
  return std::all_of(all.begin(), all.end(), [&](const Description& each) {
    return each.kind == all[0].kind && each.root == all[0].root && each.destination == all[0].destination &&
           each.source == all[0].source;
  });
}

}  // namespace

void Teams::add(nvshmem_team_t handle, int slot, std::vector<int> members, const nvshmem_team_config_t* config,
                long mask) {
  auto team = std::make_shared<Team>();
  team->handle = handle;
  team->group.slot = slot;
  team->group.own = static_cast<int>(std::find(members.begin(), members.end(), job_.pe) - members.begin());
  job_.control->team(slot).size = static_cast<uint32_t>(members.size());
  team->group.members = std::move(members);
  team->config.version = (2 << 16) + static_cast<int>(sizeof team->config);
  const bool hasContexts = config != nullptr && (mask & NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS) != 0;
  const bool hasId = config != nullptr && (mask & NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID) != 0;
  team->config.num_contexts = hasContexts ? config->num_contexts : -1;
  team->config.uniqueid = hasId ? config->uniqueid : kNoUniqueId;
  std::lock_guard lock(mutex_);
  if (watcher_) watcher_(*team, true);
  teams_[handle] = std::move(team);
}

void Teams::watch(Watcher watcher) {
  std::lock_guard lock(mutex_);
  watcher_ = std::move(watcher);
  if (!watcher_) return;
  for (auto& [handle, team] : teams_) watcher_(*team, true);
}

void Teams::open(const std::vector<int>& devices) {
  std::vector<int> all, leaders, sameDevice;
  for (int pe = 0; pe < job_.size; ++pe) {
    all.push_back(pe);
    const bool isFirst =
        std::find(devices.begin(), devices.begin() + pe, devices[static_cast<size_t>(pe)]) == devices.begin() + pe;
    if (isFirst) leaders.push_back(pe);
    if (devices[static_cast<size_t>(pe)] == devices[static_cast<size_t>(job_.pe)]) sameDevice.push_back(pe);
  }
  // All PEs are on this machine.
  add(NVSHMEM_TEAM_WORLD, kWorldSlot, all, nullptr, 0);
  add(NVSHMEM_TEAM_SHARED, kSharedSlot, all, nullptr, 0);
  add(NVSHMEMX_TEAM_NODE, kNodeSlot, all, nullptr, 0);
  add(NVSHMEMX_TEAM_SAME_MYPE_NODE, kAloneSlots + job_.pe, {job_.pe}, nullptr, 0);
  add(NVSHMEMI_TEAM_SAME_GPU, kSameDeviceSlots + sameDevice[0], sameDevice, nullptr, 0);
  if (sameDevice[0] == job_.pe) add(NVSHMEMI_TEAM_GPU_LEADERS, kLeadersSlot, leaders, nullptr, 0);
}

void Teams::close() {
  std::lock_guard lock(mutex_);
  for (auto& [handle, team] : teams_) {
    if (handle >= NVSHMEM_TEAMS_MIN) leave(*team);
  }
  teams_.clear();
}

std::shared_ptr<Team> Teams::find(nvshmem_team_t handle) const {
  std::lock_guard lock(mutex_);
  auto found = teams_.find(handle);
  return found == teams_.end() ? nullptr : found->second;
}

bool Teams::hasRoom() const {
  std::lock_guard lock(mutex_);
  return teams_.size() < mostTeams();
}

int Teams::takeSlot() {
  for (int slot = kMadeSlots; slot < kSlots; ++slot) {
    uint32_t isFree = 0;
    if (job_.control->team(slot).isTaken.compare_exchange_strong(isFree, 1)) return slot;
  }
  return -1;
}

// No member uses the slot any more. Reset it for the next team.
void Teams::freeSlot(int slot) {
  TeamSlot& own = job_.control->team(slot);
  for (auto& member : own.members) member = 0;
  for (auto& arrivals : own.arrivals) arrivals = 0;
  own.joined = 0;
  own.left = 0;
  own.size = 0;
  own.uniqueId = 0;
  own.isTaken = 0;
}

void Teams::leave(const Team& team) {
  if (job_.control->team(team.group.slot).left.fetch_add(1) + 1 == team.group.members.size()) freeSlot(team.group.slot);
}

void Teams::destroy(nvshmem_team_t handle) {
  if (handle == NVSHMEM_TEAM_INVALID) return;
  if (handle >= 0 && handle < NVSHMEM_TEAMS_MIN)
    shoal::nvshmem::leave("nvshmem_team_destroy: team %d is NVSHMEM's own", handle);
  std::lock_guard lock(mutex_);
  auto found = teams_.find(handle);
  if (found == teams_.end()) return report("nvshmem_team_destroy: there is no team %d", handle);
  if (watcher_) watcher_(*found->second, false);
  leave(*found->second);
  teams_.erase(found);
}

int Teams::split(const Team& parent, const char* function, const Description& arguments,
                 const std::vector<int>& members, const nvshmem_team_config_t* config, long mask,
                 nvshmem_team_t& made) {
  made = NVSHMEM_TEAM_INVALID;
  const bool isFirst = !members.empty() && members[0] == parent.group.own;
  const int taken = isFirst ? takeSlot() : -1;
  Description own = arguments;
  own.count = static_cast<uint64_t>(taken + 1);
  own.value = (members.empty() || hasRoom()) && (!isFirst || taken >= 0);
  std::vector<Description> all;
  if (!job_.tell(parent.group, function, own, all)) return NVSHMEMX_ERROR_INTERNAL;
  int status = NVSHMEMX_SUCCESS;
  if (!agree(all)) {
    report("%s: the PEs of the team ask for different things", function);
    status = NVSHMEMX_ERROR_SYMMETRY;
  } else if (std::any_of(all.begin(), all.end(), [](const Description& each) { return each.value == 0; })) {
    // All PEs of the parent learn of the failure, even those that would not become members.
    status = NVSHMEMX_ERROR_OUT_OF_MEMORY;
  }
  if (status != NVSHMEMX_SUCCESS || members.empty()) {
    if (taken >= 0) freeSlot(taken);
    return status;
  }
  const int slot = static_cast<int>(all[static_cast<size_t>(members[0])].count) - 1;
  std::vector<int> pes;
  for (const int member : members) pes.push_back(parent.group.members[static_cast<size_t>(member)]);
  made = handleOf(slot);
  add(made, slot, std::move(pes), config, mask);
  return NVSHMEMX_SUCCESS;
}

int Teams::makeById(uint64_t uniqueId, int size, int place, const nvshmem_team_config_t* config, long mask,
                    nvshmem_team_t& made) {
  constexpr char function[] = "nvshmemx_team_init";
  made = NVSHMEM_TEAM_INVALID;
  if (!hasRoom()) return NVSHMEMX_ERROR_OUT_OF_MEMORY;
  Shared& shared = job_.control->shared();
  const uint64_t anybody = job_.size == 64 ? ~uint64_t{0} : (uint64_t{1} << job_.size) - 1;
  // Only one PE at a time searches for the slot.
  const auto isMine = [&] {
    uint32_t isFree = 0;
    return shared.teamLock.compare_exchange_strong(isFree, 1);
  };
  if (!job_.waitFor(shared.teamLock, anybody, false, function, isMine)) return NVSHMEMX_ERROR_INTERNAL;
  int slot = -1;
  for (int each = kMadeSlots; each < kSlots && slot < 0; ++each) {
    if (job_.control->team(each).uniqueId.load() == uniqueId) slot = each;
  }
  if (slot < 0 && (slot = takeSlot()) >= 0) {
    job_.control->team(slot).uniqueId = uniqueId;
    job_.control->team(slot).size = static_cast<uint32_t>(size);
  }
  bool isPlaced = false;
  if (slot >= 0) {
    TeamSlot& own = job_.control->team(slot);
    isPlaced = own.size.load() == static_cast<uint32_t>(size) && own.members[place].load() == 0;
    if (isPlaced) {
      own.members[place] = job_.pe + 1;
      own.joined.fetch_add(1);
    }
  }
  shared.teamLock = 0;
  futexWakeAll(shared.teamLock);
  if (slot < 0) return NVSHMEMX_ERROR_OUT_OF_MEMORY;
  if (!isPlaced) {
    report("%s: another PE has place %d already, or gave another size than %d", function, place, size);
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  TeamSlot& own = job_.control->team(slot);
  own.doorbell.fetch_add(1);
  futexWakeAll(own.doorbell);
  if (!job_.waitFor(own.doorbell, anybody, false, function,
                    [&] { return own.joined.load() == static_cast<uint32_t>(size); }))
    return NVSHMEMX_ERROR_INTERNAL;
  std::vector<int> members;
  for (int index = 0; index < size; ++index) members.push_back(own.members[index].load() - 1);
  made = handleOf(slot);
  add(made, slot, std::move(members), config, mask);
  return NVSHMEMX_SUCCESS;
}

}  // namespace shoal::nvshmem

using namespace shoal::nvshmem;

// Without a session, only the world team is known, as soon as there is a job.
int nvshmem_team_my_pe(nvshmem_team_t handle) {
  const auto session = running();
  if (!session) return handle == NVSHMEM_TEAM_WORLD ? nvshmem_my_pe() : 0;
  const auto team = session->teams.find(handle);
  return team ? team->group.own : -1;
}

int nvshmem_team_n_pes(nvshmem_team_t handle) {
  const auto session = running();
  if (!session) return handle == NVSHMEM_TEAM_WORLD ? nvshmem_n_pes() : 0;
  const auto team = session->teams.find(handle);
  return team ? static_cast<int>(team->group.members.size()) : -1;
}

void nvshmem_team_get_config(nvshmem_team_t handle, nvshmem_team_config_t* config) {
  const auto team = require("nvshmem_team_get_config")->teams.find(handle);
  if (!team) return report("nvshmem_team_get_config: there is no team %d", handle);
  if (config != nullptr) *config = team->config;
}

int nvshmem_team_translate_pe(nvshmem_team_t source, int pe, nvshmem_team_t destination) {
  const auto session = require("nvshmem_team_translate_pe");
  const auto from = session->teams.find(source), to = session->teams.find(destination);
  if (!from || !to || pe < 0 || pe >= static_cast<int>(from->group.members.size())) return -1;
  const auto& members = to->group.members;
  const auto found = std::find(members.begin(), members.end(), from->group.members[static_cast<size_t>(pe)]);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

int nvshmem_team_split_strided(nvshmem_team_t parent, int start, int stride, int size,
                               const nvshmem_team_config_t* config, long mask, nvshmem_team_t* team) {
  constexpr char function[] = "nvshmem_team_split_strided";
  const auto session = require(function);
  const auto of = session->teams.find(parent);
  if (team == nullptr) return -1;
  *team = NVSHMEM_TEAM_INVALID;
  if (!of) return NVSHMEMX_ERROR_INVALID_VALUE;
  const auto all = static_cast<int64_t>(of->group.members.size());
  if (start < 0 || start >= all || size < 1 || size > all || stride < 1 ||
      start + int64_t{stride} * (size - 1) >= all) {
    report("%s: start %d, stride %d, size %d do not fit a team of %d PEs", function, start, stride, size,
           static_cast<int>(all));
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  std::vector<int> members;
  for (int index = 0; index < size; ++index) members.push_back(start + index * stride);
  if (std::find(members.begin(), members.end(), of->group.own) == members.end()) members.clear();
  const Description arguments{strided, 0, 0, size, 0, static_cast<uint64_t>(start), static_cast<uint64_t>(stride), 0};
  return session->teams.split(*of, function, arguments, members, config, mask, *team);
}

int nvshmem_team_split_2d(nvshmem_team_t parent, int xrange, const nvshmem_team_config_t* xconfig, long xmask,
                          nvshmem_team_t* xteam, const nvshmem_team_config_t* yconfig, long ymask,
                          nvshmem_team_t* yteam) {
  constexpr char function[] = "nvshmem_team_split_2d";
  const auto session = require(function);
  const auto of = session->teams.find(parent);
  if (xteam == nullptr || yteam == nullptr) return -1;
  *xteam = *yteam = NVSHMEM_TEAM_INVALID;
  if (!of || xrange < 1) return -1;
  const int all = static_cast<int>(of->group.members.size()), width = std::min(xrange, all), own = of->group.own;
  std::vector<int> row, column;
  for (int member = own / width * width; member < std::min(all, (own / width + 1) * width); ++member)
    row.push_back(member);
  for (int member = own % width; member < all; member += width) column.push_back(member);
  const Description arguments{twoDimensional, 0, 0, width, 0, 0, 0, 0};
  const int status = session->teams.split(*of, function, arguments, row, xconfig, xmask, *xteam);
  const int other = session->teams.split(*of, function, arguments, column, yconfig, ymask, *yteam);
  if (status == 0 && other == 0) return 0;
  // Either both teams exist or none.
  if (status == 0) session->teams.destroy(*xteam);
  if (other == 0) session->teams.destroy(*yteam);
  *xteam = *yteam = NVSHMEM_TEAM_INVALID;
  return status != 0 ? status : other;
}

int nvshmemx_team_get_uniqueid(nvshmemx_team_uniqueid_t* uniqueid) {
  require("nvshmemx_team_get_uniqueid");
  if (uniqueid == nullptr) return NVSHMEMX_ERROR_INVALID_VALUE;
  do {
    if (getrandom(uniqueid, sizeof *uniqueid, 0) != sizeof *uniqueid) return NVSHMEMX_ERROR_INTERNAL;
  } while (*uniqueid == 0 || *uniqueid == kNoUniqueId);
  return NVSHMEMX_SUCCESS;
}

int nvshmemx_team_init(nvshmem_team_t* team, nvshmem_team_config_t* config, long mask, int npes, int index) {
  const auto session = require("nvshmemx_team_init");
  if (team == nullptr) return NVSHMEMX_ERROR_INVALID_VALUE;
  *team = NVSHMEM_TEAM_INVALID;
  if (config == nullptr || (mask & NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID) == 0 || config->uniqueid == 0 ||
      config->uniqueid == kNoUniqueId) {
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  if (npes < 1 || npes > session->job->size || index < 0 || index >= npes) return NVSHMEMX_ERROR_INVALID_VALUE;
  return session->teams.makeById(config->uniqueid, npes, index, config, mask, *team);
}

void nvshmem_team_destroy(nvshmem_team_t team) {
  const auto session = require("nvshmem_team_destroy");
  session->multicast.forget(team);
  session->teams.destroy(team);
}
