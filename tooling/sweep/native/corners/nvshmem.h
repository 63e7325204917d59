// Jobs of two PEs.
#pragma once

#include "corners.h"
#include "shoal/nvshmem.h"

namespace corners {

inline int me = 0;
inline nvshmemx_uniqueid_t id;
inline nvshmemx_init_attr_t attributes;
inline CUstream stream;
inline void* cells;  // symmetric, 64 KiB, zeroed
inline int* numbers;

// Joins the job.
inline int join() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, me) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS)
    _exit(99);
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  attributes.version = (1 << 16) + static_cast<int>(sizeof attributes);
  attributes.args.version = (1 << 16) + static_cast<int>(sizeof attributes.args);
  attributes.args.uid_args.version = (1 << 16) + static_cast<int>(sizeof attributes.args.uid_args);
  nvshmemx_set_attr_uniqueid_args(me, 2, &id, &attributes);
  if (nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) _exit(98);
  return 0;
}
// Joins the job and allocates symmetric memory.
inline int start() {
  join();
  cells = nvshmem_calloc(1, 64 << 10);
  numbers = static_cast<int*>(cells);
  return 0;
}

inline int split(int start, int stride, int size, nvshmem_team_t* team) {
  *team = 99;
  return nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, start, stride, size, nullptr, 0, team);
}

// Runs a group as a job. Each PE executes the program anew, because a fork would copy NVSHMEM's state.
inline void runJob(const char* name) {
  fflush(stdout);
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
    execl("/proc/self/exe", "nvshmem", name, std::to_string(pe).c_str(), digits.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(processes[0], &status, 0);
  // The other PE may wait forever for one that has ended.
  for (int round = 0; round < 60; ++round) {
    if (waitpid(processes[1], nullptr, WNOHANG) != 0) break;
    usleep(5000);
    if (round < 59) continue;
    kill(processes[1], SIGKILL);
    waitpid(processes[1], nullptr, 0);
  }
  if (WIFSIGNALED(status))
    printf(WTERMSIG(status) == SIGALRM ? "%s does not end = %d\n" : "%s ends by signal = %d\n", name, WTERMSIG(status));
  else if (WEXITSTATUS(status) != 0) printf("%s ends with = %d\n", name, WEXITSTATUS(status));
}

inline int run(int count, char** arguments, const std::vector<Group>& groups) {
  setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo", 0);
  setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
  for (const auto& [name, body] : groups) {
    if (count > 1 && std::string(arguments[1]) != name) continue;
    if (count < 4) {
      runJob(name);
      continue;
    }
    me = atoi(arguments[2]);
    isSilent = me != 0;
    for (size_t index = 0; index < sizeof id; ++index)
      reinterpret_cast<unsigned char*>(&id)[index] =
          static_cast<unsigned char>(std::stoi(std::string(arguments[3] + 2 * index, 2), nullptr, 16));
    alarm(15);
    running = name;
    body();
    fflush(stdout);
    _exit(0);
  }
  return 0;
}

}  // namespace corners
