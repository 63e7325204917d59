// The structure of graphs: creating, cloning, reading, editing and printing them.
#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include "conditional.h"
#include "graph.h"

using namespace shoal;

namespace {

// CUDA's convention for lists: without an array, only the count; with an array, as many as fit, and nulls for the rest.
CUresult showNodes(const std::vector<GraphNode*>& found, CUgraphNode* nodes, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (nodes != nullptr) {
    for (size_t index = 0; index < *count; ++index)
      nodes[index] = index < found.size() ? found[index]->handle() : nullptr;
  }
  *count = nodes == nullptr ? found.size() : std::min(*count, found.size());
  return CUDA_SUCCESS;
}

bool isPlain(const CUgraphEdgeData& data) { return data.from_port == 0 && data.to_port == 0 && data.type == 0; }

// Edge data is lost without an array for it, so the function then refuses edges that have data.
CUresult showEdges(const std::vector<Edge>& found, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> list;
  for (const Edge& edge : found) {
    if (nodes != nullptr && data == nullptr && !isPlain(edge.data)) return CUDA_ERROR_LOSSY_QUERY;
    list.push_back(edge.node);
  }
  if (data != nullptr) {
    for (size_t index = 0; index < *count; ++index)
      data[index] = index < found.size() ? found[index].data : CUgraphEdgeData{};
  }
  return showNodes(list, nodes, count);
}

CUresult allEdges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  return withGraph(handle, [&](Graph& graph) -> CUresult {
    if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::pair<GraphNode*, Edge>> found;
    for (auto& node : graph.nodes) {
      for (const Edge& edge : node->dependencies) found.emplace_back(node.get(), edge);
    }
    if (from == nullptr) {
      *count = found.size();
      return CUDA_SUCCESS;
    }
    for (size_t index = 0; index < *count; ++index) {
      const bool isThere = index < found.size();
      if (isThere && data == nullptr && !isPlain(found[index].second.data)) return CUDA_ERROR_LOSSY_QUERY;
      from[index] = isThere ? found[index].second.node->handle() : nullptr;
      to[index] = isThere ? found[index].first->handle() : nullptr;
      if (data != nullptr) data[index] = isThere ? found[index].second.data : CUgraphEdgeData{};
    }
    *count = std::min(*count, found.size());
    return CUDA_SUCCESS;
  });
}

CUresult addDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
                         size_t count) {
  return withGraph(handle, [&](Graph& graph) -> CUresult {
    if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::pair<GraphNode*, Edge>> given;
    for (size_t index = 0; index < count; ++index) {
      GraphNode* target = findNode(to[index]);
      std::vector<Edge> one;
      if (target == nullptr || !graph.holds(target)) return CUDA_ERROR_INVALID_VALUE;
      if (const CUresult status =
              readDependencies(graph, from + index, data == nullptr ? nullptr : data + index, 1, one))
        return status;
      for (const Edge& edge : target->dependencies) {
        if (edge.node == one[0].node && edge.data.from_port == one[0].data.from_port) return CUDA_ERROR_INVALID_VALUE;
      }
      if (one[0].node == target) return CUDA_ERROR_INVALID_VALUE;
      given.emplace_back(target, one[0]);
    }
    for (auto& [target, edge] : given) target->dependencies.push_back(edge);
    // No edge may close a cycle.
    if (!graph.inOrder().empty() || graph.nodes.empty()) return CUDA_SUCCESS;
    for (auto& [target, edge] : given) {
      auto& all = target->dependencies;
      all.erase(std::find_if(all.begin(), all.end(), [&](const Edge& each) { return each.node == edge.node; }));
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult removeDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
                            size_t count) {
  return withGraph(handle, [&](Graph& graph) -> CUresult {
    if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    const auto find = [&](size_t index, GraphNode*& target) {
      target = findNode(to[index]);
      auto& all = target->dependencies;
      return std::find_if(all.begin(), all.end(), [&](const Edge& edge) {
        if (edge.node->handle() != from[index]) return false;
        return data == nullptr ? isPlain(edge.data)
                               : edge.data.from_port == data[index].from_port && edge.data.type == data[index].type;
      });
    };
    for (size_t index = 0; index < count; ++index) {
      GraphNode* target = findNode(to[index]);
      if (target == nullptr || !graph.holds(target)) return CUDA_ERROR_INVALID_VALUE;
      if (find(index, target) == target->dependencies.end()) return CUDA_ERROR_INVALID_VALUE;
    }
    // A graph with memory nodes can only grow: its edges cannot be removed.
    if (count != 0 && graph.hasMemory()) return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t index = 0; index < count; ++index) {
      GraphNode* target = nullptr;
      const auto found = find(index, target);
      if (found != target->dependencies.end()) target->dependencies.erase(found);
    }
    return CUDA_SUCCESS;
  });
}

const char* nameOf(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY: return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET: return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST: return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH: return "GRAPH";
    case CU_GRAPH_NODE_TYPE_EMPTY: return "EMPTY";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "WAIT_EVENT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "EVENT_RECORD";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "MEM_ALLOC";
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return "MEM_FREE";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return "BATCH_MEM_OP";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return "CONDITIONAL";
    default: return "NODE";
  }
}

void draw(FILE* file, const Graph& graph, int& next) {
  const int number = next++;
  fprintf(file, "subgraph cluster_%d {\nlabel=\"graph_%d\"\n", number, number);
  std::unordered_map<const GraphNode*, size_t> index;
  for (auto& node : graph.nodes) {
    const size_t id = index.size();
    index[node.get()] = id;
    fprintf(file, "\"graph_%d_node_%zu\"[label=\"%zu\\n%s\"];\n", number, id, id, nameOf(node->work->type()));
  }
  for (auto& node : graph.nodes) {
    for (const Edge& edge : node->dependencies) {
      fprintf(file, "\"graph_%d_node_%zu\" -> \"graph_%d_node_%zu\";\n", number, index[edge.node], number,
              index[node.get()]);
    }
  }
  fprintf(file, "}\n");
  for (auto& node : graph.nodes) {
    if (auto* child = dynamic_cast<const ChildWork*>(node->work.get())) draw(file, *child->graph, next);
    auto* conditional = dynamic_cast<const ConditionalWork*>(node->work.get());
    if (conditional == nullptr) continue;
    for (auto& body : conditional->bodies) draw(file, *body, next);
  }
}

}  // namespace

CUresult cuGraphCreate(CUgraph* phGraph, unsigned int flags) {
  return withGraphs([&] {
    if (phGraph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = Graph::create()->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph hGraph) {
  return withGraph(hGraph, [&](Graph& graph) {
    if (graph.isOwned || graph.isCaptured) return CUDA_ERROR_INVALID_VALUE;
    graphs().take(graph.number);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
  return withGraph(originalGraph, [&](Graph& graph) -> CUresult {
    if (phGraphClone == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (graph.isBody) return CUDA_ERROR_NOT_SUPPORTED;
    auto copy = Graph::create();
    if (const CUresult status = copyGraph(graph, *copy, false)) {
      graphs().take(copy->number);
      return status;
    }
    *phGraphClone = copy->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph) {
  return withGraph(hClonedGraph, [&](Graph& graph) {
    if (phNode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (auto& node : graph.nodes) {
      if (node->original != reinterpret_cast<uint64_t>(hOriginalNode)) continue;
      *phNode = node->handle();
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  return withNode(hNode, [&](GraphNode& node) {
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = node.work->type();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  return withGraph(hGraph, [&](Graph& graph) {
    std::vector<GraphNode*> found;
    for (auto& node : graph.nodes) found.push_back(node.get());
    return showNodes(found, nodes, numNodes);
  });
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
  return withGraph(hGraph, [&](Graph& graph) {
    std::vector<GraphNode*> found;
    for (auto& node : graph.nodes) {
      if (node->dependencies.empty()) found.push_back(node.get());
    }
    return showNodes(found, rootNodes, numRootNodes);
  });
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges) {
  return allEdges(hGraph, from, to, nullptr, numEdges);
}
CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edgeData,
                            size_t* numEdges) {
  return allEdges(hGraph, from, to, edgeData, numEdges);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies, size_t* numDependencies) {
  return withNode(
      hNode, [&](GraphNode& node) { return showEdges(node.dependencies, dependencies, nullptr, numDependencies); });
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* dependencies, CUgraphEdgeData* edgeData,
                                       size_t* numDependencies) {
  return withNode(
      hNode, [&](GraphNode& node) { return showEdges(node.dependencies, dependencies, edgeData, numDependencies); });
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes, size_t* numDependentNodes) {
  return withNode(hNode, [&](GraphNode& node) {
    return showEdges(node.graph->dependentsOf(&node), dependentNodes, nullptr, numDependentNodes);
  });
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* dependentNodes, CUgraphEdgeData* edgeData,
                                         size_t* numDependentNodes) {
  return withNode(hNode, [&](GraphNode& node) {
    return showEdges(node.graph->dependentsOf(&node), dependentNodes, edgeData, numDependentNodes);
  });
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t numDependencies) {
  return addDependencies(hGraph, from, to, nullptr, numDependencies);
}
CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edgeData, size_t numDependencies) {
  return addDependencies(hGraph, from, to, edgeData, numDependencies);
}
CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t numDependencies) {
  return removeDependencies(hGraph, from, to, nullptr, numDependencies);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* edgeData, size_t numDependencies) {
  return removeDependencies(hGraph, from, to, edgeData, numDependencies);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  return withNode(hNode, [&](GraphNode& node) -> CUresult {
    if (node.graph->hasMemory()) return CUDA_ERROR_NOT_SUPPORTED;
    node.graph->remove(&node);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags) {
  return withGraph(hGraph, [&](Graph& graph) {
    constexpr unsigned known = 0xffff;
    if (path == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    FILE* file = fopen(path, "w");
    if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
    fprintf(file, "digraph dot {\n");
    int next = 1;
    draw(file, graph, next);
    const bool isWritten = fprintf(file, "}\n") > 0;
    return fclose(file) == 0 && isWritten ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  });
}
