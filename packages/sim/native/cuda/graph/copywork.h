// A copy in up to three dimensions.
#pragma once

#include "work.h"

namespace shoal {

// The contexts whose access rights apply at either end, if not the stream's context.
struct PeerContexts {
  std::shared_ptr<Context> to, from;
};

class CopyWork : public Work {
 public:
  CopyWork(const CUDA_MEMCPY3D& parameters, std::shared_ptr<Context> owner, PeerContexts users = {})
      : parameters(parameters), owner_(std::move(owner)), users_(std::move(users)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMCPY; }
  std::shared_ptr<Context> context() const override { return owner_; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override;
  const CUDA_MEMCPY3D parameters;

 private:
  const std::shared_ptr<Context> owner_;
  const PeerContexts users_;
};

}  // namespace shoal
