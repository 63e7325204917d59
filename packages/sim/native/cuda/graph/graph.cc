#include "graph.h"

#include <algorithm>
#include <unordered_set>

#include "conditional.h"
#include "memory.h"

namespace shoal {

std::recursive_mutex& graphMutex() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

HandleTable<Graph>& graphs() {
  static auto* table = new HandleTable<Graph>(9, "graphs");
  return *table;
}

HandleTable<UserObject>& userObjects() {
  static auto* table = new HandleTable<UserObject>(12, "user objects");
  return *table;
}

namespace {

std::unordered_map<uint64_t, GraphNode*>& nodesByNumber() {
  static auto* table = new std::unordered_map<uint64_t, GraphNode*>;
  return *table;
}

uint64_t nextNode() {
  static std::atomic<uint64_t> next{(uint64_t{10} << 44) + 0x1000};
  return next.fetch_add(16);
}

}  // namespace

GraphNode* findNode(CUgraphNode handle) {
  const auto found = nodesByNumber().find(reinterpret_cast<uint64_t>(handle));
  return found == nodesByNumber().end() ? nullptr : found->second;
}

std::shared_ptr<Graph> Graph::create() {
  auto graph = std::make_shared<Graph>();
  graph->number = graphs().reserve();
  graphs().put(graph->number, graph);
  return graph;
}

std::shared_ptr<Graph> Graph::owned() {
  isOwned = true;
  return {this, [](Graph* graph) { graphs().take(graph->number); }};
}

Graph::~Graph() {
  std::lock_guard lock(graphMutex());
  for (auto& node : nodes) {
    nodesByNumber().erase(node->number);
    // The child graph may outlive this node, because others may hold it.
    if (const auto* child = dynamic_cast<const ChildWork*>(node->work.get())) child->graph->parent_ = nullptr;
  }
  for (auto& [object, count] : userObjects) releaseUserObject(object, count);
}

GraphNode* Graph::add(std::shared_ptr<const Work> work, std::vector<Edge> dependencies) {
  auto node = std::make_shared<GraphNode>();
  node->number = nextNode();
  node->graph = this;
  node->work = std::move(work);
  node->dependencies = std::move(dependencies);
  nodesByNumber()[node->number] = node.get();
  nodes.push_back(node);
  count(*node->work, true);
  return node.get();
}

void Graph::replace(GraphNode& node, std::shared_ptr<const Work> work) {
  count(*node.work, false);
  node.work = std::move(work);
  count(*node.work, true);
}

void Graph::remove(GraphNode* node) {
  for (auto& other : nodes) {
    auto& edges = other->dependencies;
    edges.erase(std::remove_if(edges.begin(), edges.end(), [&](const Edge& edge) { return edge.node == node; }),
                edges.end());
  }
  count(*node->work, false);
  nodesByNumber().erase(node->number);
  nodes.erase(std::find_if(nodes.begin(), nodes.end(), [&](auto& each) { return each.get() == node; }));
}

CUresult Graph::addChecked(CUgraphNode* out, std::shared_ptr<const Work> work, std::vector<Edge> dependencies) {
  Operation unused;
  // Check the work's resources as far as they are known when the node is added.
  if (const CUresult status = work->prepare(nullptr, unused)) return status;
  *out = add(std::move(work), std::move(dependencies))->handle();
  return CUDA_SUCCESS;
}

std::vector<GraphNode*> Graph::inOrder() const {
  std::vector<GraphNode*> order;
  std::unordered_map<const GraphNode*, size_t> missing;
  std::unordered_map<const GraphNode*, std::vector<GraphNode*>> dependents;
  for (auto& node : nodes) {
    missing[node.get()] = node->dependencies.size();
    for (const Edge& edge : node->dependencies) dependents[edge.node].push_back(node.get());
    if (node->dependencies.empty()) order.push_back(node.get());
  }
  for (size_t at = 0; at < order.size(); ++at) {
    for (GraphNode* dependent : dependents[order[at]]) {
      if (--missing[dependent] == 0) order.push_back(dependent);
    }
  }
  if (order.size() != nodes.size()) order.clear();
  return order;
}

void Graph::count(const Work& work, bool isAdded) {
  const auto type = work.type();
  const auto* child = dynamic_cast<const ChildWork*>(&work);
  if (child != nullptr) {
    child->graph->parent_ = isAdded ? this : nullptr;
    // Removed nodes still count in the height. The result is at most too high, and no call has to visit all nodes.
    size_t height = child->graph->height_;
    for (Graph* graph = this; isAdded && graph != nullptr && graph->height_ <= height; graph = graph->parent_)
      graph->height_ = ++height;
  }
  const size_t memory = child != nullptr ? child->graph->memoryNodes_
                                         : type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  const size_t conditional =
      child != nullptr ? child->graph->conditionalNodes_ : type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
  if (memory == 0 && conditional == 0) return;
  for (Graph* graph = this; graph != nullptr; graph = graph->parent_) {
    graph->memoryNodes_ += isAdded ? memory : 0 - memory;
    graph->conditionalNodes_ += isAdded ? conditional : 0 - conditional;
  }
}

size_t Graph::depth() const {
  size_t levels = 1;
  const Graph* graph = this;
  for (; graph->parent_ != nullptr; graph = graph->parent_) ++levels;
  return levels + graph->depthOfBody;
}

bool Graph::contains(const Graph& other) const {
  for (const Graph* graph = &other; graph != nullptr; graph = graph->parent_) {
    if (graph == this) return true;
  }
  return false;
}

std::vector<Edge> Graph::dependentsOf(const GraphNode* node) const {
  std::vector<Edge> found;
  for (auto& other : nodes) {
    for (const Edge& edge : other->dependencies) {
      if (edge.node == node) found.push_back({other.get(), edge.data});
    }
  }
  return found;
}

std::vector<GraphNode*> Graph::leaves() const {
  std::unordered_set<const GraphNode*> inner;
  for (auto& node : nodes) {
    for (const Edge& edge : node->dependencies) inner.insert(edge.node);
  }
  std::vector<GraphNode*> found;
  for (auto& node : nodes) {
    if (inner.count(node.get()) == 0) found.push_back(node.get());
  }
  return found;
}

CUresult readDependencies(Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count,
                          std::vector<Edge>& to) {
  if (count != 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t index = 0; index < count; ++index) {
    GraphNode* node = findNode(nodes[index]);
    if (node == nullptr || !graph.holds(node)) return CUDA_ERROR_INVALID_VALUE;
    for (const Edge& edge : to) {
      if (edge.node == node) return CUDA_ERROR_INVALID_VALUE;
    }
    Edge edge{node, data == nullptr ? CUgraphEdgeData{} : data[index]};
    if (edge.data.type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC || edge.data.to_port != 0)
      return CUDA_ERROR_INVALID_VALUE;
    for (const unsigned char reserved : edge.data.reserved) {
      if (reserved != 0) return CUDA_ERROR_INVALID_VALUE;
    }
    // Only a kernel has ports.
    const bool isPlain = edge.data.from_port == 0 && edge.data.type == 0;
    if (!isPlain && node->work->type() != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
    to.push_back(edge);
  }
  return CUDA_SUCCESS;
}

CUresult copyGraph(const Graph& from, Graph& to, bool isWhole) {
  if (!isWhole && !from.isCloneable()) return CUDA_ERROR_NOT_SUPPORTED;
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  to.conditions = from.conditions;
  for (GraphNode* node : from.inOrder()) {
    std::vector<Edge> dependencies;
    for (const Edge& edge : node->dependencies) dependencies.push_back({copies[edge.node], edge.data});
    auto work = node->work;
    if (auto* child = dynamic_cast<const ChildWork*>(work.get())) {
      auto graph = Graph::createOwned();
      if (const CUresult status = copyGraph(*child->graph, *graph, isWhole)) return status;
      work = std::make_shared<ChildWork>(std::move(graph));
    } else if (auto* conditional = dynamic_cast<const ConditionalWork*>(work.get())) {
      std::shared_ptr<const Work> copy;
      if (const CUresult status = conditional->copy(copy)) return status;
      work = std::move(copy);
    }
    GraphNode* copy = to.add(std::move(work), std::move(dependencies));
    copy->original = node->number;
    copies[node] = copy;
  }
  for (auto& [object, count] : from.userObjects) {
    object->references += count;
    to.userObjects.emplace_back(object, count);
  }
  return CUDA_SUCCESS;
}

void releaseUserObject(std::shared_ptr<UserObject> object, uint64_t count) {
  object->references -= count;
  if (object->references != 0) return;
  userObjects().take(object->number);
  object->destroy(object->data);
}

}  // namespace shoal
