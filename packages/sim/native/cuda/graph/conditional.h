// Conditional nodes. A value that kernels set decides whether, how often, or which body graph a node runs.
#pragma once

#include <atomic>

#include "core/forengine.h"
#include "graph.h"

namespace shoal {

// The value behind a conditional handle of a graph. Clones of the graph share it, because their kernels use the same
// handle.
struct Condition {
  ~Condition();
  uint64_t handle = 0;
  std::atomic<unsigned> value{0};
  unsigned initial = 0;
  bool isSetAtLaunch = false;
};

// Called by kernels: sets the value of a handle. Returns false if the handle does not exist.
SHOAL_FOR_ENGINE bool setCondition(uint64_t handle, unsigned value);

class ConditionalWork : public Work {
 public:
  ConditionalWork(std::shared_ptr<Condition> condition, CUgraphConditionalNodeType kind,
                  std::vector<std::shared_ptr<Graph>> bodies, std::shared_ptr<Context> owner)
      : condition(std::move(condition)), kind(kind), bodies(std::move(bodies)), owner(std::move(owner)) {
    for (auto& body : this->bodies) handles.push_back(body->handle());
  }
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_CONDITIONAL; }
  std::shared_ptr<Context> context() const override { return owner; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override;
  CUresult copy(std::shared_ptr<const Work>& copy) const;

  const std::shared_ptr<Condition> condition;
  const CUgraphConditionalNodeType kind;
  const std::vector<std::shared_ptr<Graph>> bodies;
  const std::shared_ptr<Context> owner;
  std::vector<CUgraph> handles;  // the handles that the user sees; they stay in place
};

// True if all bodies contain only kernels, copies, fills, empty nodes, child graphs, and conditional nodes of these.
bool hasValidBodies(const Graph& graph, bool isBody = false);

// True if the graph, or a graph inside it, has a handle that no node uses.
bool hasUnusedCondition(const Graph& graph);

CUresult addConditional(Graph& graph, CUgraphNode* out, std::vector<Edge> dependencies,
                        CUDA_CONDITIONAL_NODE_PARAMS& parameters);

}  // namespace shoal
