// A fill in one or two dimensions.
#pragma once

#include "work.h"

namespace shoal {

class FillWork : public Work {
 public:
  FillWork(const CUDA_MEMSET_NODE_PARAMS& parameters, std::shared_ptr<Context> owner)
      : parameters(parameters), owner_(std::move(owner)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMSET; }
  std::shared_ptr<Context> context() const override { return owner_; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override;
  const CUDA_MEMSET_NODE_PARAMS parameters;

 private:
  const std::shared_ptr<Context> owner_;
};

}  // namespace shoal
