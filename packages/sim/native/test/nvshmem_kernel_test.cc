// Kernels with NVSHMEM calls: the state for NVSHMEM's device library, read by kernels directly.
#include <algorithm>
#include <cstring>

#include "pes.h"

namespace {

const char kText[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .const .align 8 .b8 nvshmemi_device_state_d[776];
.visible .global .u32 another;
// Writes the own number, and its place in a team of all, into memory of the next PE; then waits for the one before.
.visible .entry around(.param .u64 target, .param .u64 told)
{
.reg .b64 %t, %b, %o, %n, %s, %team, %map; .reg .b32 %me, %all, %next, %v; .reg .pred %p;
ld.const.u32 %me, [nvshmemi_device_state_d+4]; ld.const.u32 %all, [nvshmemi_device_state_d+8];
add.u32 %next, %me, 1; rem.u32 %next, %next, %all;
ld.param.u64 %t, [target]; ld.const.u64 %b, [nvshmemi_device_state_d+40]; sub.u64 %o, %t, %b;
ld.const.u64 %b, [nvshmemi_device_state_d+56]; mul.wide.u32 %n, %next, 8; add.u64 %b, %b, %n; ld.global.u64 %b, [%b];
add.u64 %b, %b, %o;
ld.const.u64 %team, [nvshmemi_device_state_d+96]; ld.global.u64 %team, [%team]; ld.global.u64 %map, [%team+784];
mul.wide.u32 %n, %me, 4; add.u64 %map, %map, %n; ld.global.u32 %v, [%map];
add.u32 %v, %v, 100;
st.relaxed.sys.global.u32 [%b], %v;
WAIT:
ld.relaxed.sys.global.u32 %v, [%t];
setp.eq.u32 %p, %v, 0;
@%p bra WAIT;
ld.param.u64 %s, [told]; st.global.u32 [%s], %v;
ld.global.u32 %v, [%team+16]; st.global.u32 [%s+4], %v;
ret;
}
)";

void around(process::Peer& parent) {
  pes::Running running(parent);
  const int me = nvshmem_my_pe(), all = nvshmem_n_pes();
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, kText));
  for (int round = 0; round < 2; ++round) {
    OK(nvshmemx_cumodule_init(module));
    auto* target = static_cast<uint32_t*>(nvshmem_calloc(1, 4));
    CUdeviceptr told = check::memory(8);
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, module, "around"));
    void* parameters[] = {&target, &told};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    OK(cuCtxSynchronize());
    uint32_t values[2];
    OK(cuMemcpyDtoH_v2(values, told, 8));
    EQUAL(values[0], static_cast<uint32_t>((me + all - 1) % all + 100));
    EQUAL(values[1], static_cast<uint32_t>(all));
    OK(cuMemFree_v2(told));
    nvshmem_barrier_all();
    nvshmem_free(target);
    OK(nvshmemx_cumodule_finalize(module));
  }
  OK(cuModuleUnload(module));
}

// Kernels find a team under the number of its host handle, or null.
void teams(process::Peer& parent) {
  pes::Running running(parent);
  const int me = nvshmem_my_pe();
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, kText));
  nvshmem_team_t early = NVSHMEM_TEAM_INVALID, late = NVSHMEM_TEAM_INVALID;
  OK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 1, 1, 2, nullptr, 0, &early));
  OK(nvshmemx_cumodule_init(module));
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  OK(cuModuleGetGlobal_v2(&variable, &bytes, module, "nvshmemi_device_state_d"));
  uint64_t state[97];
  OK(cuMemcpyDtoH_v2(state, variable, sizeof state));
  auto teamAt = [&](nvshmem_team_t handle, int32_t* head) {
    uint64_t address = 0;
    OK(cuMemcpyDtoH_v2(&address, state[12] + 8 * static_cast<uint64_t>(handle), 8));
    if (address != 0) OK(cuMemcpyDtoH_v2(head, address, 24));
    return address;
  };
  auto checkTeam = [&](nvshmem_team_t handle, int own, int start, int stride, int size) {
    int32_t head[6];
    CHECK(teamAt(handle, head) != 0);
    const int32_t want[] = {own, start, stride, size, handle};
    for (int at = 0; at < 5; ++at) EQUAL(head[at + 1], want[at]);
  };
  checkTeam(NVSHMEM_TEAM_WORLD, me, 0, 1, 3);
  if (me != 0) checkTeam(early, me - 1, 1, 1, 2);
  OK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, 2, nullptr, 0, &late));
  int32_t head[6];
  if (me != 1) {
    checkTeam(late, me / 2, 0, 2, 2);
    nvshmem_team_destroy(late);
    EQUAL(teamAt(late, head), uint64_t{0});
  }
  OK(cuModuleUnload(module));
}

constexpr int kMostTeams = NVSHMEM_TEAMS_MIN + 64;
// The memory per team in version 3.4.5: two synchronizations, and room for reductions, broadcasts and all-to-alls.
constexpr uint64_t kSyncBytesOfTeam = 8 * (16 * 27648 + (512 << 10) / 8);

template <class Value>
Value valueAt(const std::vector<char>& bytes, size_t offset) {
  Value value;
  memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The device state of a module after its initialisation.
std::vector<char> stateOf(CUmodule& module) {
  OK(cuModuleLoadData(&module, kText));
  OK(nvshmemx_cumodule_init(module));
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  OK(cuModuleGetGlobal_v2(&variable, &bytes, module, "nvshmemi_device_state_d"));
  EQUAL(bytes, 776);
  return pes::fetch<char>(reinterpret_cast<void*>(variable), bytes);
}

// Checks each field of the device library's state.
void state(process::Peer& parent) {
  pes::Running running(parent);
  const int me = nvshmem_my_pe(), all = nvshmem_n_pes(), next = (me + 1) % all;
  CUmodule module = nullptr;
  const auto found = stateOf(module);
  const struct {
    size_t offset;
    int value;
  } numbers[] = {{0, (1 << 16) + 776},
                 {4, me},
                 {8, all},
                 {12, me},
                 {16, all},
                 {20, 0},
                 {24, 0},
                 {28, 0},
                 {32, 1},
                 {76, 0},
                 {120, (2 << 16) + 512},
                 {124, 2},
                 {128, 2},
                 {132, 2},
                 {136, 2},
                 {140, 0},
                 {144, 0},
                 {176, 0},
                 {192, 0},
                 {196, 1}};
  for (auto& each : numbers) EQUAL(valueAt<int>(found, each.offset), each.value);
  EQUAL(valueAt<char>(found, 36) + 2 * valueAt<char>(found, 37), 3);
  EQUAL(valueAt<char>(found, 768) + 2 * valueAt<char>(found, 769) + 4 * valueAt<char>(found, 770), 6);
  for (const size_t zero : {64, 152, 160, 184, 200, 208}) EQUAL(valueAt<uint64_t>(found, zero), 0);
  EQUAL(valueAt<uint64_t>(found, 168), 512 << 10);
  for (size_t at = 216; at < 752; at += 8) EQUAL(valueAt<uint64_t>(found, at), 0);

  // The heaps of all PEs. An allocation has the same offset in each.
  char* cells = static_cast<char*>(nvshmem_malloc(64));
  char* heap = valueAt<char*>(found, 40);
  const auto bases = pes::fetch<char*>(valueAt<void*>(found, 56), static_cast<size_t>(all));
  CHECK(bases[static_cast<size_t>(me)] == heap);
  for (int pe = 0; pe < all; ++pe) CHECK(nvshmem_ptr(cells, pe) == bases[static_cast<size_t>(pe)] + (cells - heap));
  CHECK(valueAt<uint64_t>(found, 48) > static_cast<uint64_t>(cells - heap));

  // The memory for communication within teams, of equal size on all PEs.
  char* sync = valueAt<char*>(found, 104);
  CHECK(nvshmem_ptr(sync, next) != nullptr && nvshmem_ptr(sync + kSyncBytesOfTeam * kMostTeams - 1, next) != nullptr);
  auto* counters = valueAt<int64_t*>(found, 112);
  // The next word is the timeout, which no PE has set.
  const auto counted = pes::fetch<int64_t>(counters, 2 * kMostTeams + 1);
  for (size_t at = 0; at < counted.size(); ++at) EQUAL(counted[at], at < 2 * kMostTeams ? 1 : 0);
  const auto own = reinterpret_cast<uint64_t>(counters + 2 * kMostTeams);
  const uint64_t words[] = {valueAt<uint64_t>(found, 80), valueAt<uint64_t>(found, 88), valueAt<uint64_t>(found, 752),
                            valueAt<uint64_t>(found, 760)};
  for (int at = 0; at < 4; ++at) EQUAL(words[at], own + (at == 0 ? 0 : 56 + 8 * static_cast<uint64_t>(at)));
  // A destroyed team's memory is reset. The memory of its neighbours does not change.
  nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
  OK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, all, nullptr, 0, &team));
  CHECK(team > 0 && team + 1 < kMostTeams);
  const auto number = static_cast<uint64_t>(team);
  const char mark = 7;
  const uint64_t first = number * kSyncBytesOfTeam, last = first + kSyncBytesOfTeam - 1;
  for (const uint64_t place : {first - 1, first, last, last + 1}) pes::store(sync + place, std::vector<char>{mark});
  pes::store(counters + 2 * number - 1, std::vector<int64_t>{7, 7, 7, 7});
  nvshmem_team_destroy(team);
  EQUAL(pes::fetch<char>(sync + first - 1, 1)[0], mark);
  EQUAL(pes::fetch<char>(sync + first, 1)[0], 0);
  EQUAL(pes::fetch<char>(sync + last, 1)[0], 0);
  EQUAL(pes::fetch<char>(sync + last + 1, 1)[0], mark);
  CHECK((pes::fetch<int64_t>(counters + 2 * number - 1, 4) == std::vector<int64_t>{7, 1, 1, 7}));
  nvshmem_barrier_all();
  OK(cuModuleUnload(module));
}

// Checks a team's state, including the map from PEs to members after the members.
void checkTeamState(const std::vector<char>& found, nvshmem_team_t handle, const std::vector<int>& members,
                    int stride) {
  const int me = nvshmem_my_pe(), all = nvshmem_n_pes(), size = static_cast<int>(members.size());
  const auto teams = pes::fetch<char*>(valueAt<void*>(found, 96), static_cast<size_t>(kMostTeams));
  const char* address = teams[static_cast<size_t>(handle)];
  CHECK(address != nullptr && reinterpret_cast<uint64_t>(address) % 8 == 0);
  const auto team = pes::fetch<char>(address, 792);
  const int own = static_cast<int>(std::find(members.begin(), members.end(), me) - members.begin());
  const struct {
    size_t offset;
    int value;
  } numbers[] = {{0, (3 << 16) + 792},
                 {4, own},
                 {8, members[0]},
                 {12, stride},
                 {16, size},
                 {20, handle},
                 {24, (2 << 16) + 64},
                 {28, -1},
                 {108, -1},
                 {132, 1 << 20},
                 {176, 1},
                 {232, 1},
                 {240, NVSHMEM_TEAM_INVALID},
                 {248, NVSHMEM_TEAM_INVALID}};
  for (auto& each : numbers) EQUAL(valueAt<int>(team, each.offset), each.value);
  EQUAL(valueAt<char>(team, 236), 1);
  EQUAL(valueAt<char>(team, 237), size == all);
  EQUAL(valueAt<char>(team, 244), 0);
  const auto map = pes::fetch<int>(valueAt<void*>(team, 784), static_cast<size_t>(size + all));
  for (int index = 0; index < size; ++index)
    EQUAL(map[static_cast<size_t>(index)], members[static_cast<size_t>(index)]);
  for (int pe = 0; pe < all; ++pe) {
    const auto member = std::find(members.begin(), members.end(), pe);
    EQUAL(map[static_cast<size_t>(size + pe)], member == members.end() ? -1 : member - members.begin());
  }
}

void teamStates(process::Peer& parent) {
  pes::Running running(parent);
  const int me = nvshmem_my_pe();
  CUmodule module = nullptr;
  const auto found = stateOf(module);
  checkTeamState(found, NVSHMEM_TEAM_WORLD, {0, 1, 2, 3, 4}, 1);
  checkTeamState(found, NVSHMEMX_TEAM_SAME_MYPE_NODE, {me}, 1);
  // Members with a constant stride, and without one.
  nvshmem_team_t even = NVSHMEM_TEAM_INVALID;
  OK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, 3, nullptr, 0, &even));
  if (me % 2 == 0) checkTeamState(found, even, {0, 2, 4}, 2);
  auto* shared = static_cast<uint64_t*>(nvshmem_calloc(2, sizeof(uint64_t)));
  if (me == 0) {
    for (int team = 0; team < 2; ++team) {
      uint64_t id = 0;
      OK(nvshmemx_team_get_uniqueid(&id));
      for (int pe = 0; pe < 5; ++pe) nvshmem_uint64_p(shared + team, id, pe);
    }
  }
  nvshmem_barrier_all();
  const std::vector<int> irregular[] = {{0, 1, 4}, {0, 3, 4}};
  for (int team = 0; team < 2; ++team) {
    const auto& members = irregular[team];
    const auto place = std::find(members.begin(), members.end(), me);
    if (place == members.end()) continue;
    nvshmem_team_config_t config = {};
    config.uniqueid = nvshmem_uint64_g(shared + team, me);
    nvshmem_team_t made = NVSHMEM_TEAM_INVALID;
    OK(nvshmemx_team_init(&made, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 3,
                          static_cast<int>(place - members.begin())));
    checkTeamState(found, made, members, -1);
  }
  nvshmem_barrier_all();
  OK(cuModuleUnload(module));
}

void refused(process::Peer& parent) {
  pes::beQuiet();
  pes::Running running(parent);
  CUmodule module = nullptr;
  const std::string head = ".version 7.0\n.target sm_70\n.address_size 64\n";
  OK(cuModuleLoadData(&module, (head + ".visible .const .align 8 .b8 nvshmemi_device_state_d[768];\n").c_str()));
  EQUAL(nvshmemx_cumodule_init(module), NVSHMEMX_ERROR_INTERNAL);  // another version
  OK(cuModuleUnload(module));
  OK(cuModuleLoadData(&module, (head + ".visible .global .u32 another;\n").c_str()));
  EQUAL(nvshmemx_cumodule_init(module), NVSHMEMX_ERROR_INTERNAL);
  EQUAL(nvshmemx_cumodule_finalize(module), NVSHMEMX_ERROR_INTERNAL);
  OK(cuModuleUnload(module));
  EQUAL(nvshmemx_cumodule_init(module), NVSHMEMX_ERROR_INTERNAL);  // unloaded
}

// The device has too little memory for teams.
void withoutRoom(process::Peer& parent) {
  pes::beQuiet();
  setenv("SHOAL_SIM_MEMORY_BYTES", "268435456", 1);
  pes::Running running(parent);
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, kText));
  EQUAL(nvshmemx_cumodule_init(module), NVSHMEMX_ERROR_INTERNAL);
  OK(cuModuleUnload(module));
}

}  // namespace

ROLES({"around", around}, {"teams", teams}, {"state", state}, {"team states", teamStates}, {"refused", refused},
      {"without room", withoutRoom});

TEST(a_kernel_writes_into_memory_of_the_next_pe) {
  for (const int size : {1, 2, 4}) pes::Job("around", size).succeed();
}
TEST(kernels_find_teams_by_their_handles) { pes::Job("teams", 3).succeed(); }
TEST(the_state_has_everything_at_its_place) {
  for (const int size : {1, 3}) pes::Job("state", size).succeed();
}
TEST(teams_have_everything_at_its_place) { pes::Job("team states", 5).succeed(); }
TEST(modules_without_the_state_are_refused) { pes::Job("refused", 2).succeed(); }
TEST(a_device_without_room_for_teams_is_refused) { pes::Job("without room", 2).succeed(); }
