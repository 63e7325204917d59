// The same for NVSHMEM: how it answers in the corners, one `group.name = code` a line. Every group is a job of two
// processes, of which PE 0 prints; what may bring a process down is a group of its own.
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "shoal/nvshmem.h"

namespace {

std::string group;
int me = 0;

void say(const std::string& name, long long value) {
  if (me != 0) return;
  printf("%s.%s = %lld\n", group.c_str(), name.c_str(), value);
  fflush(stdout);
}

nvshmemx_init_attr_t attributesOf(nvshmemx_uniqueid_t* id, int pe, int size) {
  nvshmemx_init_attr_t attributes = {};
  attributes.version = (1 << 16) + static_cast<int>(sizeof attributes);
  attributes.args.version = (1 << 16) + static_cast<int>(sizeof attributes.args);
  attributes.args.uid_args.version = (1 << 16) + static_cast<int>(sizeof attributes.args.uid_args);
  nvshmemx_set_attr_uniqueid_args(pe, size, id, &attributes);
  return attributes;
}

void beforeStart() {
  int value = -7;
  nvshmem_query_thread(&value);
  say("query_thread", value);
  say("init_status", nvshmemx_init_status());
  say("my_pe", nvshmem_my_pe());
  say("n_pes", nvshmem_n_pes());
  say("team_my_pe world", nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD));
  say("team_n_pes world", nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD));
  say("ptr", nvshmem_ptr(&value, 0) != nullptr);
  say("mc_ptr", nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, &value) != nullptr);
  nvshmemx_init_attr_t attributes = {};
  nvshmemx_uniqueid_t id = {};
  say("set id null", nvshmemx_set_attr_uniqueid_args(0, 1, nullptr, &attributes));
  say("set pe 5 of 2", nvshmemx_set_attr_uniqueid_args(5, 2, &id, &attributes));
  say("set version", attributes.version);
  say("set mpi null", nvshmemx_set_attr_mpi_comm_args(nullptr, &attributes));
  nvshmemx_hostlib_finalize();
  say("status after finalize", nvshmemx_init_status());
}

void* cells = nullptr;  // symmetric, 64 KiB, zeroed, in all groups that start
CUstream stream = nullptr;

void queries() {
  int value = -7;
  nvshmem_query_thread(&value);
  say("query_thread", value);
  say("init_status", nvshmemx_init_status());
  for (int team = 0; team <= NVSHMEM_TEAMS_MIN; ++team) {
    say("team_n_pes " + std::to_string(team), nvshmem_team_n_pes(team));
    say("team_my_pe " + std::to_string(team), nvshmem_team_my_pe(team));
  }
  say("team_n_pes invalid", nvshmem_team_n_pes(NVSHMEM_TEAM_INVALID));
  say("team_my_pe invalid", nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID));
  say("translate", nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 1, NVSHMEM_TEAM_SHARED));
  say("translate from invalid", nvshmem_team_translate_pe(NVSHMEM_TEAM_INVALID, 1, NVSHMEM_TEAM_WORLD));
  say("translate to invalid", nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 1, NVSHMEM_TEAM_INVALID));
  say("translate to a team without it", nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 1, NVSHMEMX_TEAM_SAME_MYPE_NODE));
  nvshmem_team_config_t config = {};
  nvshmem_team_get_config(NVSHMEM_TEAM_WORLD, &config);
  say("config version", config.version);
  say("config contexts", config.num_contexts);
  say("config id", static_cast<long long>(config.uniqueid));
}

void memory() {
  char host[64] = {};
  say("malloc 0", nvshmem_malloc(0) != nullptr);
  say("calloc 0", nvshmem_calloc(0, 8) != nullptr);
  void* first = nvshmem_malloc(1);
  void* second = nvshmem_malloc(1);
  say("malloc 1", first != nullptr);
  say("distance of two bytes", static_cast<char*>(second) - static_cast<char*>(first));
  nvshmem_free(nullptr);
  nvshmem_free(first);
  void* again = nvshmem_malloc(1);
  say("the same again", again == first);
  void* aligned = nvshmem_align(4096, 100);
  say("align 4096", aligned != nullptr && reinterpret_cast<uint64_t>(aligned) % 4096 == 0);
  say("ptr own", nvshmem_ptr(cells, 0) == cells);
  say("ptr other", nvshmem_ptr(cells, 1) != nullptr && nvshmem_ptr(cells, 1) != cells);
  say("ptr interior",
      static_cast<char*>(nvshmem_ptr(static_cast<char*>(cells) + 8, 1)) - static_cast<char*>(nvshmem_ptr(cells, 1)));
  say("ptr of host memory", nvshmem_ptr(host, 1) != nullptr);
  say("ptr of no memory", nvshmem_ptr(nullptr, 1) != nullptr);
  unsigned type = 0;
  say("attribute",
      cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(cells)));
  say("memory type", type);
  say("attribute of peer", cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                 reinterpret_cast<CUdeviceptr>(nvshmem_ptr(cells, 1))));
  say("memory type of peer", type);
}

void registration() {
  CUdeviceptr local = 0;
  cuMemAlloc_v2(&local, 4 << 20);
  void* buffer = reinterpret_cast<void*>(local);
  say("register", nvshmemx_buffer_register(buffer, 2 << 20));
  say("register again", nvshmemx_buffer_register(buffer, 2 << 20));
  say("unregister", nvshmemx_buffer_unregister(buffer));
  say("unregister again", nvshmemx_buffer_unregister(buffer));
  say("register null", nvshmemx_buffer_register(nullptr, 4096));
  nvshmemx_buffer_unregister_all();
  say("register symmetric with flags", nvshmemx_buffer_register_symmetric(buffer, 2 << 20, 1) != nullptr);
}

int split(int start, int stride, int size, nvshmem_team_t& team) {
  team = 99;
  return nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, start, stride, size, nullptr, 0, &team);
}

void teams() {
  nvshmem_team_t team = 99, other = 99;
  say("split all", split(0, 1, 2, team));
  say("handle", team);
  say("size", nvshmem_team_n_pes(team));
  nvshmem_team_config_t config = {};
  nvshmem_team_get_config(team, &config);
  say("config contexts", config.num_contexts);
  nvshmem_team_destroy(team);
  say("split without own", split(1, 1, 1, team));
  say("handle without own", team);
  say("split of one", split(0, 1, 1, team));
  say("split 2d", nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 1, nullptr, 0, &team, nullptr, 0, &other));
  say("row", nvshmem_team_n_pes(team));
  say("column", nvshmem_team_n_pes(other));
  say("split 2d wide", nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 9, nullptr, 0, &team, nullptr, 0, &other));
  say("row wide", nvshmem_team_n_pes(team));
  say("column wide", nvshmem_team_n_pes(other));
  nvshmem_team_destroy(NVSHMEM_TEAM_INVALID);
  nvshmem_team_destroy(NVSHMEM_TEAM_WORLD);
  say("world after destroy", nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD));
  int made = 0;
  while (made < 100 && split(0, 1, 2, team) == 0 && team != NVSHMEM_TEAM_INVALID) ++made;
  say("most teams", made);
}

void collectives() {
  int* numbers = static_cast<int*>(cells);
  say("reduce", nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, numbers + 100, numbers, 100));
  say("reduce in place", nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, numbers, numbers, 100));
  say("reduce none", nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, numbers + 100, numbers, 0));
  say("broadcast none", nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, numbers + 100, numbers, 0, 0));
  say("barrier", nvshmem_barrier(NVSHMEM_TEAM_WORLD));
  say("sync", nvshmem_team_sync(NVSHMEM_TEAM_WORLD));
  say("barrier on stream", nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, stream));
  say("reduce on stream", nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, numbers + 100, numbers, 100, stream));
  say("synchronize", cuStreamSynchronize(stream));
}

void elements() {
  int* numbers = static_cast<int*>(cells);
  if (me == 0) nvshmem_int_p(numbers, 41, 1);
  nvshmem_barrier_all();
  if (me == 0) say("g", nvshmem_int_g(numbers, 1));
  if (me == 0) nvshmem_int_put(numbers, numbers, 0, 1);
  nvshmem_barrier_all();
  if (me == 0) nvshmem_int_p(numbers + 2, 5, 0);
  say("g of own", nvshmem_int_g(numbers + 2, 0));
  nvshmem_barrier_all();
}

void again(nvshmemx_init_attr_t& attributes) {
  say("init", nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
  nvshmemx_hostlib_finalize();
  say("status after one of two", nvshmemx_init_status());
  nvshmemx_hostlib_finalize();
  say("status after both", nvshmemx_init_status());
  say("my_pe", nvshmem_my_pe());
  say("n_pes", nvshmem_n_pes());
  say("third init", nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
  say("status", nvshmemx_init_status());
}

struct Risky {
  const char* name;
  bool isStarted;
  std::function<long long()> call;
};

const std::vector<Risky>& risky() {
  static const auto number = [] { return static_cast<int*>(cells); };
  static const std::vector<Risky> all = {
      {"early malloc", false, [] { return nvshmem_malloc(16) != nullptr; }},
      {"early barrier", false, [] { return nvshmem_barrier(NVSHMEM_TEAM_WORLD); }},
      {"early barrier_all", false, [] { return nvshmem_barrier_all(), 0; }},
      {"early quiet", false, [] { return nvshmem_quiet(), 0; }},
      {"early atomic", false,
       [] {
         int cell = 0;
         return nvshmem_int_atomic_fetch(&cell, 0);
       }},
      {"early register", false,
       [] {
         int cell = 0;
         return nvshmemx_buffer_register(&cell, 4);
       }},
      {"early team id", false,
       [] {
         nvshmemx_team_uniqueid_t id = 0;
         return nvshmemx_team_get_uniqueid(&id);
       }},
      {"early module", false, [] { return nvshmemx_cumodule_init(nullptr); }},
      {"id null", false, [] { return nvshmemx_get_uniqueid(nullptr); }},
      {"init without attributes", false,
       [] { return nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, nullptr); }},
      {"set without attributes", false,
       [] {
         nvshmemx_uniqueid_t id = {};
         return nvshmemx_set_attr_uniqueid_args(0, 1, &id, nullptr);
       }},
      {"malloc too much", true, [] { return nvshmem_malloc(size_t{1} << 45) != nullptr; }},
      {"calloc overflow", true, [] { return nvshmem_calloc(SIZE_MAX / 2, 4) != nullptr; }},
      {"align odd", true, [] { return nvshmem_align(24, 100) != nullptr; }},
      {"free of host memory", true,
       [] {
         int cell = 0;
         return nvshmem_free(&cell), 0;
       }},
      {"free twice", true,
       [] {
         void* made = nvshmem_malloc(8);
         nvshmem_free(made);
         return nvshmem_free(made), 0;
       }},
      {"ptr of PE 2", true, [] { return nvshmem_ptr(cells, 2) != nullptr; }},
      {"ptr of PE -1", true, [] { return nvshmem_ptr(cells, -1) != nullptr; }},
      {"put to PE 2", true,
       [] {
         int cell = 0;
         return nvshmem_int_put(number(), &cell, 1, 2), 0;
       }},
      {"put to PE -1", true,
       [] {
         int cell = 0;
         return nvshmem_int_put(number(), &cell, 1, -1), 0;
       }},
      {"put to host memory", true,
       [] {
         int cell = 0;
         return nvshmem_int_put(&cell, number(), 1, 1), 0;
       }},
      {"put to no memory", true, [] { return nvshmem_int_put(nullptr, number(), 1, 1), 0; }},
      {"put beyond the heap", true, [] { return nvshmem_putmem(number() + (size_t{1} << 36), number(), 4, 1), 0; }},
      {"stride 0", true, [] { return nvshmem_int_iput(number(), number() + 10, 0, 1, 2, 1 - me), 0; }},
      {"stride -1", true, [] { return nvshmem_int_iput(number() + 10, number() + 20, -1, 1, 2, 1 - me), 0; }},
      {"atomic", true,
       [] {
         return me == 0 ? nvshmem_int_atomic_fetch_add(number(), 1, 1) + nvshmem_int_atomic_fetch(number(), 1) : 0;
       }},
      {"signal operation 3", true,
       [] {
         return nvshmemx_signal_op_on_stream(static_cast<uint64_t*>(cells), 1, 3, 1, stream),
                cuStreamSynchronize(stream);
       }},
      {"comparison 9", true,
       [] { return nvshmemx_int_wait_until_on_stream(number(), 9, 0, stream), cuStreamSynchronize(stream); }},
      {"barrier of no team", true, [] { return nvshmem_barrier(NVSHMEM_TEAM_INVALID); }},
      {"barrier of team 29", true, [] { return nvshmem_barrier(29); }},
      {"team_n_pes 29", true, [] { return nvshmem_team_n_pes(29); }},
      {"team_n_pes 1000", true, [] { return nvshmem_team_n_pes(1000); }},
      {"translate PE 2", true, [] { return nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 2, NVSHMEM_TEAM_SHARED); }},
      {"translate PE -1", true, [] { return nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, -1, NVSHMEM_TEAM_SHARED); }},
      {"split start -1", true,
       [] {
         nvshmem_team_t team;
         return split(-1, 1, 1, team);
       }},
      {"split start 2", true,
       [] {
         nvshmem_team_t team;
         return split(2, 1, 1, team);
       }},
      {"split stride 0", true,
       [] {
         nvshmem_team_t team;
         return split(0, 0, 2, team);
       }},
      {"split size 0", true,
       [] {
         nvshmem_team_t team;
         return split(0, 1, 0, team);
       }},
      {"split size 3", true,
       [] {
         nvshmem_team_t team;
         return split(0, 1, 3, team);
       }},
      {"split beyond", true,
       [] {
         nvshmem_team_t team;
         return split(0, 2, 2, team);
       }},
      {"split of no team", true,
       [] {
         nvshmem_team_t team;
         return nvshmem_team_split_strided(NVSHMEM_TEAM_INVALID, 0, 1, 1, nullptr, 0, &team);
       }},
      {"split 2d 0", true,
       [] {
         nvshmem_team_t team, other;
         return nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 0, nullptr, 0, &team, nullptr, 0, &other);
       }},
      {"team init without id", true,
       [] {
         nvshmem_team_t team;
         nvshmem_team_config_t config = {};
         return nvshmemx_team_init(&team, &config, 0, 2, me);
       }},
      {"team init without config", true,
       [] {
         nvshmem_team_t team;
         return nvshmemx_team_init(&team, nullptr, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 2, me);
       }},
      {"broadcast root 2", true,
       [] { return nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, number() + 10, number(), 1, 2); }},
      {"reduce of no team", true,
       [] { return nvshmem_int_sum_reduce(NVSHMEM_TEAM_INVALID, number() + 10, number(), 1); }},
      {"module null", true, [] { return nvshmemx_cumodule_init(nullptr); }},
      {"library null", true, [] { return nvshmemx_culibrary_init(nullptr); }},
  };
  return all;
}

using Group = void (*)();
struct Named {
  const char* name;
  Group run;
};
constexpr Named kGroups[] = {{"queries", queries}, {"memory", memory},           {"registration", registration},
                             {"teams", teams},     {"collectives", collectives}, {"elements", elements}};

void finish() {
  fflush(stdout);
  _exit(0);
}

// One process of a job.
void run(const std::string& name, nvshmemx_uniqueid_t& id) {
  alarm(15);
  group = name;
  const auto& calls = risky();
  const auto found = std::find_if(calls.begin(), calls.end(), [&](auto& each) { return name == each.name; });
  if (name == "before start") {
    beforeStart();
    finish();
  }
  if (found != calls.end() && !found->isStarted) {
    say("answer", found->call());
    finish();
  }
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, me) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS)
    _exit(99);
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  nvshmemx_init_attr_t attributes = attributesOf(&id, me, 2);
  if (nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) _exit(98);
  if (name == "start again") {
    again(attributes);
    finish();
  }
  cells = nvshmem_calloc(1, 64 << 10);
  for (const Named& each : kGroups) {
    if (name == each.name) each.run();
  }
  if (found != calls.end()) say("answer", found->call());
  finish();
}

void ask(const std::string& name) {
  fflush(stdout);
  nvshmemx_uniqueid_t id = {};
  id.version = (1 << 16) + static_cast<int>(sizeof id);
  nvshmemx_get_uniqueid(&id);
  std::string digits;
  for (size_t index = 0; index < sizeof id; ++index) {
    char two[3];
    snprintf(two, sizeof two, "%02x", reinterpret_cast<unsigned char*>(&id)[index]);
    digits += two;
  }
  pid_t processes[2];
  for (int pe = 0; pe < 2; ++pe) {
    processes[pe] = fork();
    if (processes[pe] != 0) continue;
    execl("/proc/self/exe", "nvshmem", name.c_str(), std::to_string(pe).c_str(), digits.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(processes[0], &status, 0);
  // The other may wait for one that has ended.
  for (int round = 0; round < 60; ++round) {
    if (waitpid(processes[1], nullptr, WNOHANG) != 0) break;
    usleep(5000);
    if (round < 59) continue;
    kill(processes[1], SIGKILL);
    waitpid(processes[1], nullptr, 0);
  }
  if (WIFSIGNALED(status))
    printf(WTERMSIG(status) == SIGALRM ? "%s does not end = %d\n" : "%s ends by signal = %d\n", name.c_str(),
           WTERMSIG(status));
  else if (WEXITSTATUS(status) != 0) printf("%s ends with = %d\n", name.c_str(), WEXITSTATUS(status));
}

}  // namespace

int main(int count, char** arguments) {
  setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo", 0);
  setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
  if (count == 4) {
    me = atoi(arguments[2]);
    nvshmemx_uniqueid_t id = {};
    for (size_t index = 0; index < sizeof id; ++index) {
      reinterpret_cast<unsigned char*>(&id)[index] =
          static_cast<unsigned char>(std::stoi(std::string(arguments[3] + 2 * index, 2), nullptr, 16));
    }
    run(arguments[1], id);
  }
  ask("before start");
  for (const Named& each : kGroups) ask(each.name);
  ask("start again");
  for (const Risky& each : risky()) ask(each.name);
}
