// Executable graphs: a copy of a graph's nodes, distributed over streams.
#pragma once

#include "devicelaunch.h"
#include "graph.h"

namespace shoal {

class GraphExec : public std::enable_shared_from_this<GraphExec> {
 public:
  static CUresult create(Graph& graph, unsigned long long flags, std::shared_ptr<GraphExec>& exec,
                         CUgraphNode* errorNode, CUgraphInstantiateResult* result);
  ~GraphExec();

  CUresult launch(const std::shared_ptr<Stream>& stream);
  // True if the graph allows one executable graph at a time and one other than `but` exists.
  static bool holdsAlone(const Graph& graph, const GraphExec* but = nullptr);
  // Takes the parameters from a graph of equal topology.
  CUresult update(Graph& from, CUgraphExecUpdateResultInfo& info);
  // The copy of a node of the source graph, or null.
  GraphNode* find(const GraphNode& original);
  bool isEnabled(const GraphNode& node) const;
  void setEnabled(const GraphNode& node, bool isEnabled);
  CUresult setWork(GraphNode& node, std::shared_ptr<const Work> work);
  CUresult setChild(GraphNode& node, Graph& from);

  // Kernels launch the version that was uploaded last, by `cuGraphUpload` or by a launch from the host. Uploads run in
  // stream order.
  void upload(const std::shared_ptr<Stream>& stream);
  bool isUploaded() const;
  std::vector<std::shared_ptr<const Work>> uploaded() const;
  bool isForKernels() const { return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0; }
  // The context of the first node that has one, or null.
  std::shared_ptr<Context> context() const;
  KernelLaunches byKernels;

  uint64_t number = 0;
  const unsigned long long flags;

  explicit GraphExec(unsigned long long flags) : flags(flags) {}

 private:
  struct Step {
    GraphNode* node;
    std::vector<size_t> after;
    size_t lane = 0;
  };
  struct Lane {
    std::shared_ptr<Context> context;  // null: the context of the launch
    std::shared_ptr<Stream> stream;    // its own stream; the first lane may use the launch's stream
    size_t last = 0;                   // the last step
  };
  std::vector<size_t> flatten(const Graph& graph, const std::vector<size_t>& after);
  void assignLanes();
  CUresult openMemory();
  std::function<void()> uploadLocked();

  mutable std::mutex mutex_;
  std::shared_ptr<Graph> graph_;
  uint64_t source_ = 0;  // the graph that this one was instantiated or last updated from
  std::vector<Step> steps_;
  std::vector<Lane> lanes_;
  std::set<const GraphNode*> disabled_;
  bool isUploaded_ = false;
  std::vector<std::shared_ptr<const Work>> uploaded_;
  Dependency last_{};
};

HandleTable<GraphExec>& executables();

// Runs a graph on the calling thread, node by node.
CUresult runInline(const Graph& graph, const std::shared_ptr<Stream>& stream);

}  // namespace shoal
