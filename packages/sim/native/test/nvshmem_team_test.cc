// Teams.
#include <algorithm>
#include <array>
#include <iterator>

#include "pes.h"

namespace {

std::vector<int> membersOf(nvshmem_team_t team) {
  std::vector<int> members;
  for (int index = 0; index < nvshmem_team_n_pes(team); ++index)
    members.push_back(nvshmem_team_translate_pe(team, index, NVSHMEM_TEAM_WORLD));
  return members;
}

void checkTeam(nvshmem_team_t team, const std::vector<int>& members) {
  CHECK(team != NVSHMEM_TEAM_INVALID);
  CHECK(membersOf(team) == members);
  const int me = nvshmem_my_pe();
  EQUAL(nvshmem_team_my_pe(team), std::find(members.begin(), members.end(), me) - members.begin());
  EQUAL(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, me, team), nvshmem_team_my_pe(team));
  for (int round = 0; round < 20; ++round) {
    OK(nvshmem_team_sync(team));
    OK(nvshmem_barrier(team));
  }
}

void useFirstTeams(process::Peer& parent) {
  EQUAL(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD), 0);
  pes::Running running(parent);
  const int me = nvshmem_my_pe();
  const std::vector<int> all = {0, 1, 2, 3, 4};
  for (const nvshmem_team_t team : {NVSHMEM_TEAM_WORLD, NVSHMEM_TEAM_SHARED, NVSHMEMX_TEAM_NODE}) checkTeam(team, all);
  checkTeam(NVSHMEMX_TEAM_SAME_MYPE_NODE, {me});
  // The PEs are distributed alternately over the two devices.
  checkTeam(NVSHMEMI_TEAM_SAME_GPU, me % 2 == 0 ? std::vector<int>{0, 2, 4} : std::vector<int>{1, 3});
  if (me < 2) checkTeam(NVSHMEMI_TEAM_GPU_LEADERS, {0, 1});
  else EQUAL(nvshmem_team_n_pes(NVSHMEMI_TEAM_GPU_LEADERS), -1);
  for (const nvshmem_team_t team : {nvshmem_team_t{NVSHMEM_TEAM_INVALID}, nvshmem_team_t{77}, nvshmem_team_t{-5}}) {
    EQUAL(nvshmem_team_my_pe(team), -1);
    EQUAL(nvshmem_team_n_pes(team), -1);
    EQUAL(nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD), -1);
    EQUAL(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 0, team), -1);
    EQUAL(nvshmem_team_sync(team), NVSHMEMX_ERROR_INVALID_VALUE);
    EQUAL(nvshmem_barrier(team), NVSHMEMX_ERROR_INVALID_VALUE);
  }
  EQUAL(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 5, NVSHMEM_TEAM_SHARED), -1);
  EQUAL(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, -1, NVSHMEM_TEAM_SHARED), -1);
  nvshmem_team_destroy(NVSHMEM_TEAM_INVALID);  // does nothing
  checkTeam(NVSHMEM_TEAM_WORLD, all);
}

void split(process::Peer& parent) {
  pes::Running running(parent);
  const int me = nvshmem_my_pe();
  nvshmem_team_config_t config = {};
  config.num_contexts = 3;
  for (int round = 0; round < 50; ++round) {
    nvshmem_team_t even = 99, last = 99;
    OK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, 3, &config, NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS, &even));
    if (me % 2 != 0) {
      EQUAL(even, NVSHMEM_TEAM_INVALID);
      continue;
    }
    checkTeam(even, {0, 2, 4});
    nvshmem_team_config_t found = {};
    nvshmem_team_get_config(even, &found);
    EQUAL(found.num_contexts, 3);
    EQUAL(found.uniqueid, ~uint64_t{0});
    // A team of a team has the same handle on all PEs.
    OK(nvshmem_team_split_strided(even, 1, 1, 2, nullptr, 0, &last));
    if (me == 0) EQUAL(last, NVSHMEM_TEAM_INVALID);
    else checkTeam(last, {2, 4});
    if (me != 0) nvshmem_team_destroy(last);
    nvshmem_team_destroy(even);
    EQUAL(nvshmem_team_n_pes(even), -1);
  }
  nvshmem_barrier_all();
  nvshmem_team_t row = 99, column = 99;
  OK(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, nullptr, 0, &row, nullptr, 0, &column));
  checkTeam(row, me == 4 ? std::vector<int>{4} : std::vector<int>{me / 2 * 2, me / 2 * 2 + 1});
  checkTeam(column, me % 2 == 0 ? std::vector<int>{0, 2, 4} : std::vector<int>{1, 3});
  nvshmem_team_destroy(row);
  nvshmem_team_destroy(column);
  OK(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 100, nullptr, 0, &row, nullptr, 0, &column));
  checkTeam(row, {0, 1, 2, 3, 4});
  checkTeam(column, {me});
}

void splitWrong(process::Peer& parent) {
  pes::beQuiet();
  pes::Running running(parent);
  nvshmem_team_t team = 99, other = 99;
  const auto strided = [&](int start, int stride, int size) {
    return nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, start, stride, size, nullptr, 0, &team);
  };
  for (auto [start, stride, size] : {std::array{-1, 1, 1},
                                     {5, 1, 1},
                                     {0, 0, 2},
                                     {0, -1, 2},
                                     {0, 1, 0},
                                     {0, 1, 6},
                                     {0, 3, 3},
                                     {1, 2, 3},
                                     {0, INT_MAX, 3}}) {
    EQUAL(strided(start, stride, size), NVSHMEMX_ERROR_INVALID_VALUE);
    EQUAL(team, NVSHMEM_TEAM_INVALID);
  }
  EQUAL(nvshmem_team_split_strided(NVSHMEM_TEAM_INVALID, 0, 1, 1, nullptr, 0, &team), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, 1, nullptr, 0, nullptr), -1);
  EQUAL(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 0, nullptr, 0, &team, nullptr, 0, &other), -1);
  // The PEs disagree.
  EQUAL(strided(0, 1, nvshmem_my_pe() == 0 ? 2 : 3), NVSHMEMX_ERROR_SYMMETRY);
  EQUAL(team, NVSHMEM_TEAM_INVALID);
  // Creates as many teams as possible. Destroying one makes room for another.
  std::vector<nvshmem_team_t> made;
  while (strided(0, 1, 5) == 0) made.push_back(team);
  CHECK(made.size() >= 20 && made.size() < 32);
  nvshmem_team_destroy(made[3]);
  nvshmem_barrier_all();
  OK(strided(0, 1, 5));
  checkTeam(team, {0, 1, 2, 3, 4});
  // If one member has no room, all PEs of the parent get the error, even those outside the new team.
  EQUAL(strided(0, 1, 1), NVSHMEMX_ERROR_OUT_OF_MEMORY);
  EQUAL(team, NVSHMEM_TEAM_INVALID);
  EQUAL(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, nullptr, 0, &team, nullptr, 0, &other),
        NVSHMEMX_ERROR_OUT_OF_MEMORY);
  nvshmem_team_destroy(made[4]);
  nvshmem_barrier_all();
  // Only one PE has no room, because it has created another team in the meantime.
  nvshmem_team_t alone = 99;
  uint64_t id = 0;
  if (nvshmem_my_pe() == 1) {
    OK(nvshmemx_team_get_uniqueid(&id));
    nvshmem_team_config_t config = {};
    config.uniqueid = id;
    OK(nvshmemx_team_init(&alone, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 1, 0));
  }
  nvshmem_barrier_all();
  EQUAL(strided(1, 1, 1), NVSHMEMX_ERROR_OUT_OF_MEMORY);
  EQUAL(strided(2, 1, 3), 0);
  CHECK((team == NVSHMEM_TEAM_INVALID) == (nvshmem_my_pe() < 2));
  nvshmem_team_destroy(team);
  nvshmem_team_destroy(alone);
  nvshmem_team_destroy(made[3]);
}

void makeById(process::Peer& parent) {
  pes::beQuiet();
  pes::Running running(parent);
  const int me = nvshmem_my_pe();
  auto* shared = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  uint64_t id = 0;
  if (me == 0) {
    OK(nvshmemx_team_get_uniqueid(&id));
    for (int pe = 0; pe < 5; ++pe) nvshmem_uint64_p(shared, id, pe);
  }
  nvshmem_barrier_all();
  id = nvshmem_uint64_g(shared, me);
  nvshmem_team_config_t config = {};
  config.uniqueid = id;
  nvshmem_team_t team = 99;
  for (int round = 0; round < 10; ++round) {
    if (me == 2) break;
    // In reverse order, without PE 2.
    const int place = me > 2 ? 4 - me : 3 - me;
    OK(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 4, place));
    checkTeam(team, {4, 3, 1, 0});
    nvshmem_team_config_t found = {};
    nvshmem_team_get_config(team, &found);
    EQUAL(found.uniqueid, id);
    nvshmem_team_destroy(team);
    // The id can be reused after all members have destroyed the team.
    nvshmem_uint64_atomic_inc(shared, 0);
    while (nvshmem_uint64_atomic_fetch(shared, 0) < id + static_cast<uint64_t>(4 * (round + 1))) usleep(100);
  }
  nvshmem_barrier_all();
  EQUAL(nvshmemx_team_init(&team, &config, 0, 4, 0), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmemx_team_init(&team, nullptr, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 4, 0), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 6, 0), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 4, 4), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmemx_team_init(nullptr, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 4, 0), NVSHMEMX_ERROR_INVALID_VALUE);
}

}  // namespace

ROLES({"use first teams", useFirstTeams}, {"split", split}, {"split wrong", splitWrong}, {"make by id", makeById});

TEST(teams_that_are_there_from_the_start) { pes::Job("use first teams", 5).succeed(); }
TEST(teams_are_split) { pes::Job("split", 5).succeed(); }
TEST(wrong_splits_are_refused) { pes::Job("split wrong", 5).succeed(); }
TEST(teams_are_made_by_unique_id) { pes::Job("make by id", 5).succeed(); }
