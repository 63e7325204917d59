// The data that kernels with NVSHMEM calls read: the state and the teams of the device library, in the layout of 3.4.5.
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

  // Writes the state to the variable of a module. The first call allocates symmetric memory, so all PEs must make it.
  bool tell(CUdeviceptr variable, size_t bytes, std::string& problem);
  // Frees this PE's own memory. The session's context must be current.
  void close();

 private:
  bool open(std::string& problem);
  void change(const Team& team, bool isThere);

  Job& job_;
  Heap& heap_;
  Teams& teams_;
  std::mutex mutex_;
  CUdeviceptr memory_ = 0;  // read only by this PE
  void* sync_ = nullptr;    // symmetric: the PEs of a team write here for each other
};

}  // namespace shoal::nvshmem
