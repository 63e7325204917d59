// The NVSHMEM session of this process. There is at most one.
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
  // Waits for the other PEs. All PEs must call it.
  bool start(std::string& problem);
  void end();

  const std::shared_ptr<Job> job;
  const CUcontext context;
  const CUdevice device;
  CUstream stream = nullptr;  // for transfers without a stream argument
  Heap heap;
  Teams teams;
  Registered registered;
  Multicast multicast;
  KernelState kernels;
  std::vector<int> devices;       // by PE
  bool areDevicesShared = false;  // true if two PEs share a device
};

// Returns the running session. A start that waited for a device to be chosen happens here. Ends the process if there is
// no session.
std::shared_ptr<Session> require(const char* function);
// Both return null if there is no session or job.
std::shared_ptr<Session> running();
std::shared_ptr<Job> joined();

// Makes the session's context current until the end of the scope.
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

// Ends the process if the driver call failed, unless the job has failed, which was reported already.
void mustSucceed(const Session& session, CUresult status, const char* function);

// The stream's status after its work has stopped waiting. Its context is lost, so that no caller takes the data for
// valid.
constexpr CUresult kAbandoned = CUDA_ERROR_EXTERNAL_DEVICE;

// Queues `body` on a stream. The ranges are checked and stay alive until `body` has run. Its result becomes the
// context's error.
CUresult enqueue(const std::shared_ptr<Session>& session, const char* function, cudaStream_t stream,
                 std::function<CUresult()> body, const std::vector<ShoalSimRange>& ranges = {});

}  // namespace shoal::nvshmem
