// Sends and receives of one batch: all of them move forward together, so their order never matters.
#pragma once

#include <vector>

#include "endpoint.h"
#include "task.h"

namespace shoal::nccl {

class PointToPoint {
 public:
  PointToPoint(Endpoint& endpoint, const std::vector<Task>& tasks);

  // Offers what can be sent without waiting, so that a collective in the same batch does not stand in the way.
  void start();
  // Returns when all data has been received, here and by the peers.
  ncclResult_t finish();

 private:
  struct Transfer {
    Task task;
    size_t bytes = 0;
    uint64_t moved = 0;      // bytes of data (and of the length before it) that passed the ring
    bool isOffered = false;  // within a process: the address has been passed
    bool isDone = false;
  };

  bool advance();  // true when something moved
  bool advanceDirect(Transfer& transfer);
  bool advanceStaged(Transfer& transfer);
  bool isBlocked(const std::vector<Transfer>& transfers, size_t index) const;
  void ring(int rank);
  uint64_t pendingPeers() const;
  bool isFinished() const;

  Endpoint& endpoint_;
  std::vector<Transfer> sends_, receives_;
  ncclResult_t failure_ = ncclSuccess;
};

}  // namespace shoal::nccl
