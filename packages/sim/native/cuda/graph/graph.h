// Graphs and their nodes. One lock guards the structure of all graphs, because building graphs is not time-critical.
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
  GraphNode* node = nullptr;  // the node that the edge starts at
  CUgraphEdgeData data{};
};

struct GraphNode {
  CUgraphNode handle() const { return reinterpret_cast<CUgraphNode>(number); }

  uint64_t number = 0;
  uint64_t original = 0;  // in a clone: the number of the original node
  Graph* graph = nullptr;
  std::shared_ptr<const Work> work;
  std::vector<Edge> dependencies;
};

struct Graph : std::enable_shared_from_this<Graph> {
  static std::shared_ptr<Graph> create();
  // A graph owned by a node or an executable graph. The program cannot destroy it, and its handle ends with its last
  // owner.
  static std::shared_ptr<Graph> createOwned() { return create()->owned(); }
  std::shared_ptr<Graph> owned();
  ~Graph();
  CUgraph handle() const { return reinterpret_cast<CUgraph>(number); }

  // The nodes in topological order; empty if the graph has a cycle.
  std::vector<GraphNode*> inOrder() const;
  GraphNode* add(std::shared_ptr<const Work> work, std::vector<Edge> dependencies);
  CUresult addChecked(CUgraphNode* out, std::shared_ptr<const Work> work, std::vector<Edge> dependencies);
  void remove(GraphNode* node);
  // Replaces the node's work by other work of the same kind.
  void replace(GraphNode& node, std::shared_ptr<const Work> work);
  bool holds(const GraphNode* node) const { return node->graph == this; }
  // True if the graph or a nested graph has memory nodes or conditional nodes. Such a graph cannot be cloned.
  bool hasMemory() const { return memoryNodes_ != 0; }
  bool hasConditions() const { return conditionalNodes_ != 0; }
  bool isCloneable() const { return !hasMemory() && !hasConditions(); }
  // The maximum nesting depth. It is limited because many operations recurse over nested graphs.
  static constexpr size_t kDeepest = 4096;
  // True if a graph of this height may be nested in this graph.
  bool hasRoomFor(size_t height) const { return depth() + height <= kDeepest; }
  // depth(): levels around the graph. height(): levels of the graph, including itself.
  size_t depth() const;
  size_t height() const { return height_; }
  // True for the graph itself and for nested graphs.
  bool contains(const Graph& other) const;
  std::vector<Edge> dependentsOf(const GraphNode* node) const;
  std::vector<GraphNode*> leaves() const;

  uint64_t number = 0;
  bool isOwned = false;  // owned by a node or an executable graph
  bool isBody = false;   // the body of a conditional node
  size_t depthOfBody = 0;
  bool isCaptured = false;  // a capture in progress adds nodes to it
  std::vector<std::shared_ptr<GraphNode>> nodes;
  std::vector<std::pair<std::shared_ptr<UserObject>, unsigned>> userObjects;
  std::vector<std::shared_ptr<Condition>> conditions;

 private:
  // Updates the node counts of this graph and of the graphs around it.
  void count(const Work& work, bool isAdded);

  Graph* parent_ = nullptr;                        // the graph that contains this graph as a node
  size_t memoryNodes_ = 0, conditionalNodes_ = 0;  // including nested graphs
  size_t height_ = 1;
};

// A reference-counted object of the program. `destroy` is called when the last reference is released.
struct UserObject {
  uint64_t number = 0;
  CUhostFn destroy = nullptr;
  void* data = nullptr;
  uint64_t references = 0;
};

std::recursive_mutex& graphMutex();
HandleTable<Graph>& graphs();
HandleTable<UserObject>& userObjects();
// A node of a live graph, or null. The caller holds the mutex.
GraphNode* findNode(CUgraphNode handle);

// For graph functions, which need no context. Runs `body` with the lock held.
template <class Body>
CUresult withGraphs(Body&& body);
template <class Body>
CUresult withGraph(CUgraph handle, Body&& body);
template <class Body>
CUresult withNode(CUgraphNode handle, Body&& body);

// Reads a list of dependencies. All nodes must belong to the graph, and no node may appear twice.
CUresult readDependencies(Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count,
                          std::vector<Edge>& to);

// Copies all nodes and keeps their resources alive. `isWhole`: for an executable graph, which also gets the nodes that
// cannot be cloned.
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
