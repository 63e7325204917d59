// A batch of stream memory operations: words that a stream writes or waits for, in order.
#pragma once

#include <vector>

#include "work.h"

namespace shoal {

class BatchWork : public Work {
 public:
  BatchWork(std::shared_ptr<Context> owner, std::vector<CUstreamBatchMemOpParams> operations, unsigned flags)
      : operations(std::move(operations)), flags(flags), owner_(std::move(owner)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
  std::shared_ptr<Context> context() const override { return owner_; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override;
  const std::vector<CUstreamBatchMemOpParams> operations;
  const unsigned flags;

 private:
  const std::shared_ptr<Context> owner_;
};

}  // namespace shoal
