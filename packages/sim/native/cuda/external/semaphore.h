// Semaphores of another library. Streams and graph nodes signal them and wait for them.
#pragma once

#include <vector>

#include "graph/work.h"

namespace shoal {

class ExternalSemaphore {
 public:
  virtual ~ExternalSemaphore() = default;
  virtual void signal(uint64_t value) = 0;
  // True if the semaphore was signalled or has reached the value. A binary semaphore is reset by this call.
  virtual bool take(uint64_t value) = 0;
};

std::shared_ptr<ExternalSemaphore> findSemaphore(CUexternalSemaphore handle);

// Shared code of signals and waits. `Parameters` is CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS or …_WAIT_PARAMS.
template <class Parameters>
class SemaphoreWork : public Work {
 public:
  // Looks up the semaphores.
  static CUresult create(const CUexternalSemaphore* handles, const Parameters* parameters, unsigned count,
                         std::shared_ptr<SemaphoreWork>& work);
  CUgraphNodeType type() const override;
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override;

  std::vector<CUexternalSemaphore> handles;
  std::vector<Parameters> parameters;

 private:
  std::vector<std::shared_ptr<ExternalSemaphore>> semaphores_;
};

using SignalWork = SemaphoreWork<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>;
using WaitWork = SemaphoreWork<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>;

}  // namespace shoal
