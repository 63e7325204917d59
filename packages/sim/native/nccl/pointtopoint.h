// The sends and receives of one batch. All make progress together, so their order does not matter.
#pragma once

#include <vector>

#include "endpoint.h"
#include "task.h"

namespace shoal::nccl {

class PointToPoint {
 public:
  PointToPoint(Endpoint& endpoint, const std::vector<Task>& tasks);

  // Offers what can be sent without waiting, so that a collective in the same batch cannot block it.
  void start();
  // Returns when this rank and its peers have received all data.
  ncclResult_t finish();

 private:
  struct Transfer {
    Task task;
    size_t bytes = 0;
    uint64_t moved = 0;      // bytes of the data and its length that passed the ring
    bool isOffered = false;  // within a process: the address was passed
    bool isDone = false;
  };

  bool advance();  // returns true if any byte moved
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
