// Teams: an ordered list of PEs, with a slot to synchronize in.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "job.h"
#include "shoal/nvshmem.h"

namespace shoal::nvshmem {

struct Team {
  nvshmem_team_t handle = NVSHMEM_TEAM_INVALID;
  Group group;
  nvshmem_team_config_t config = {};
};

class Teams {
 public:
  explicit Teams(Job& job) : job_(job) {}
  // Creates the predefined teams; `devices` is indexed by PE.
  void open(const std::vector<int>& devices);
  // Frees the created teams that were not destroyed.
  void close();

  std::shared_ptr<Team> find(nvshmem_team_t handle) const;
  // All members of the parent must call it. `members` has ranks of the parent, and is empty if the caller is in no new
  // team. `arguments` must be equal on all PEs. Returns an nvshmemx_status.
  int split(const Team& parent, const char* function, const Description& arguments, const std::vector<int>& members,
            const nvshmem_team_config_t* config, long mask, nvshmem_team_t& made);
  // All members of the new team must call it, each with its index.
  int makeById(uint64_t uniqueId, int size, int place, const nvshmem_team_config_t* config, long mask,
               nvshmem_team_t& made);
  void destroy(nvshmem_team_t handle);
  // Reports each existing team, and afterwards each team that is created or destroyed; null stops the reports.
  using Watcher = std::function<void(const Team& team, bool isThere)>;
  void watch(Watcher watcher);

 private:
  void add(nvshmem_team_t handle, int slot, std::vector<int> members, const nvshmem_team_config_t* config, long mask);
  int takeSlot();
  void freeSlot(int slot);
  void leave(const Team& team);
  bool hasRoom() const;

  Job& job_;
  mutable std::mutex mutex_;
  std::map<nvshmem_team_t, std::shared_ptr<Team>> teams_;
  Watcher watcher_;
};

}  // namespace shoal::nvshmem
