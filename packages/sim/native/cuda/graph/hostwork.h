// A host function of the program, called in stream order.
#pragma once

#include "work.h"

namespace shoal {

class HostWork : public Work {
 public:
  explicit HostWork(const CUDA_HOST_NODE_PARAMS& parameters) : parameters(parameters) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_HOST; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override;
  const CUDA_HOST_NODE_PARAMS parameters;
};

}  // namespace shoal
