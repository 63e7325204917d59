// Graphs and their nodes. One lock guards the structure of all graphs: building them is no matter of speed.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/handles.h"
#include "work.h"

namespace shoal {

struct Graph;
struct GraphNode;
struct UserObject;
struct Condition;

struct Edge {
  GraphNode* node = nullptr;  // the one that it comes from
  CUgraphEdgeData data{};
};

struct GraphNode {
  CUgraphNode handle() const { return reinterpret_cast<CUgraphNode>(number); }

  uint64_t number = 0;
  uint64_t original = 0;  // in a clone: the node's number in the graph that was cloned
  Graph* graph = nullptr;
  std::shared_ptr<const Work> work;
  std::vector<Edge> dependencies;
};

struct Graph : std::enable_shared_from_this<Graph> {
  static std::shared_ptr<Graph> create();
  // Of a node or an executable graph: nobody else destroys it, and its handle goes with the last who has it.
  static std::shared_ptr<Graph> createOwned() { return create()->owned(); }
  std::shared_ptr<Graph> owned();
  ~Graph();
  CUgraph handle() const { return reinterpret_cast<CUgraph>(number); }

  // The nodes so that each comes after those it depends on; empty when that is impossible.
  std::vector<GraphNode*> inOrder() const;
  GraphNode* add(std::shared_ptr<const Work> work, std::vector<Edge> dependencies);
  CUresult addChecked(CUgraphNode* out, std::shared_ptr<const Work> work, std::vector<Edge> dependencies);
  void remove(GraphNode* node);
  // Gives a node other work of its kind.
  void replace(GraphNode& node, std::shared_ptr<const Work> work);
  bool holds(const GraphNode* node) const { return node->graph == this; }
  // Whether it has nodes of memory, and conditional ones, also in graphs inside. Such a graph cannot be cloned.
  bool hasMemory() const { return memoryNodes_ != 0; }
  bool hasConditions() const { return conditionalNodes_ != 0; }
  bool isCloneable() const { return !hasMemory() && !hasConditions(); }
  // Graphs lie at most so deep in one another: much that is done with a graph calls itself for each level.
  static constexpr size_t kDeepest = 4096;
  // Whether a graph of this height may be put inside.
  bool hasRoomFor(size_t height) const { return depth() + height <= kDeepest; }
  // Levels around it, and levels with it.
  size_t depth() const;
  size_t height() const { return height_; }
  // Itself, or a graph inside.
  bool contains(const Graph& other) const;
  std::vector<Edge> dependentsOf(const GraphNode* node) const;
  std::vector<GraphNode*> leaves() const;

  uint64_t number = 0;
  bool isOwned = false;  // by a node or an executable graph
  bool isBody = false;   // of a conditional node
  size_t depthOfBody = 0;
  bool isCaptured = false;  // a capture that has not ended adds to it
  std::vector<std::shared_ptr<GraphNode>> nodes;
  std::vector<std::pair<std::shared_ptr<UserObject>, unsigned>> userObjects;
  std::vector<std::shared_ptr<Condition>> conditions;

 private:
  // Keeps the counts of this graph and of those around it.
  void count(const Work& work, bool isAdded);

  Graph* parent_ = nullptr;                        // whose node this is
  size_t memoryNodes_ = 0, conditionalNodes_ = 0;  // also in graphs inside
  size_t height_ = 1;
};

// An object of the user's with a count of its own; called to destroy it when the last reference goes.
struct UserObject {
  uint64_t number = 0;
  CUhostFn destroy = nullptr;
  void* data = nullptr;
  uint64_t references = 0;
};

std::recursive_mutex& graphMutex();
HandleTable<Graph>& graphs();
HandleTable<UserObject>& userObjects();
// A node whose graph is alive. The caller holds the mutex.
GraphNode* findNode(CUgraphNode handle);

// For functions about graphs, which need no context: with the lock held.
template <class Body>
CUresult withGraphs(Body&& body);
template <class Body>
CUresult withGraph(CUgraph handle, Body&& body);
template <class Body>
CUresult withNode(CUgraphNode handle, Body&& body);

// What nodes are handed as: those of one graph, none twice.
CUresult readDependencies(Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count,
                          std::vector<Edge>& to);

// Copies all nodes, and keeps what they need alive. `isWhole`: for an executable graph, which has nodes that cannot be
// cloned, too.
CUresult copyGraph(const Graph& from, Graph& to, bool isWhole);

void releaseUserObject(std::shared_ptr<UserObject> object, uint64_t count);

class EmptyWork : public Work {
 public:
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_EMPTY; }
  CUresult prepare(const std::shared_ptr<Stream>&, Operation& operation) const override {
    operation.run = [] { return CUDA_SUCCESS; };
    return CUDA_SUCCESS;
  }
};

class ChildWork : public Work {
 public:
  explicit ChildWork(std::shared_ptr<Graph> graph) : graph(std::move(graph)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_GRAPH; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override {
    return EmptyWork().prepare(stream, operation);
  }
  const std::shared_ptr<Graph> graph;
};

}  // namespace shoal

#include "core/entry.h"

namespace shoal {

template <class Body>
CUresult withGraphs(Body&& body) {
  return initialised([&]() -> CUresult {
    std::lock_guard lock(graphMutex());
    return body();
  });
}

template <class Body>
CUresult withGraph(CUgraph handle, Body&& body) {
  return withGraphs([&]() -> CUresult {
    const auto graph = graphs().find(handle);
    return graph ? body(*graph) : CUDA_ERROR_INVALID_VALUE;
  });
}

template <class Body>
CUresult withNode(CUgraphNode handle, Body&& body) {
  return withGraphs([&]() -> CUresult {
    GraphNode* node = findNode(handle);
    return node != nullptr ? body(*node) : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace shoal
