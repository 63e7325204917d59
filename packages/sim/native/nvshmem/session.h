// NVSHMEM as it runs in this process: there is at most one.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heap.h"
#include "job.h"
#include "kernels.h"
#include "multicast.h"
#include "registered.h"
#include "shoal/nvshmem.h"
#include "team.h"

namespace shoal::nvshmem {

class Session {
 public:
  Session(std::shared_ptr<Job> ofJob, CUcontext current, CUdevice ordinal)
      : job(std::move(ofJob)),
        context(current),
        device(ordinal),
        heap(*job, ordinal),
        teams(*job),
        multicast(heap, ordinal),
        kernels(*job, heap, teams) {}
  ~Session();
  // Waits for the others; all of them call it.
  bool start(std::string& problem);
  void end();

  const std::shared_ptr<Job> job;
  const CUcontext context;
  const CUdevice device;
  CUstream stream = nullptr;  // of transfers that no stream was named for
  Heap heap;
  Teams teams;
  Registered registered;
  Multicast multicast;
  KernelState kernels;
  std::vector<int> devices;       // by PE
  bool areDevicesShared = false;  // two PEs are on one device
};

// The session that runs, begun now where it was put off until a device is chosen. Ends the process when there is none.
std::shared_ptr<Session> require(const char* function);
// Null when there is none.
std::shared_ptr<Session> running();
std::shared_ptr<Job> joined();

// The session's context, current until the end of the scope.
class InContext {
 public:
  explicit InContext(const Session& session) { isPushed_ = cuCtxPushCurrent_v2(session.context) == CUDA_SUCCESS; }
  ~InContext() {
    if (isPushed_) cuCtxPopCurrent_v2(nullptr);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  bool isPushed_ = false;
};

// Ends the process when a call of the driver failed; not where the job has failed, which was told already.
void mustSucceed(const Session& session, CUresult status, const char* function);

// What a stream is told whose work gave up waiting: its context is lost, and nobody takes the data for good.
constexpr CUresult kAbandoned = CUDA_ERROR_EXTERNAL_DEVICE;

// Queues `body` on a stream; the ranges are checked and stay alive until it has run. What it returns becomes the
// context's error.
CUresult enqueue(const std::shared_ptr<Session>& session, const char* function, cudaStream_t stream,
                 std::function<CUresult()> body, const std::vector<ShoalSimRange>& ranges = {});

}  // namespace shoal::nvshmem
