// What kernels that call NVSHMEM read: the state and the teams of its device library, as version 3.4.5 lays them out.
#pragma once

#include <mutex>
#include <string>

#include "heap.h"
#include "team.h"

namespace shoal::nvshmem {

constexpr char kDeviceStateName[] = "nvshmemi_device_state_d";

class KernelState {
 public:
  KernelState(Job& job, Heap& heap, Teams& teams) : job_(job), heap_(heap), teams_(teams) {}
  KernelState(const KernelState&) = delete;
  KernelState& operator=(const KernelState&) = delete;

  // Tells the variable of a module of the job. The first call takes symmetric memory, so all PEs make it.
  bool tell(CUdeviceptr variable, size_t bytes, std::string& problem);
  // Gives the own memory back; the session's context is current.
  void close();

 private:
  bool open(std::string& problem);
  void change(const Team& team, bool isThere);

  Job& job_;
  Heap& heap_;
  Teams& teams_;
  std::mutex mutex_;
  CUdeviceptr memory_ = 0;  // of what only this PE reads
  void* sync_ = nullptr;    // symmetric: what the PEs of a team write for each other
};

}  // namespace shoal::nvshmem
