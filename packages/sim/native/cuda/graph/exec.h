// Executable graphs: a copy of a graph's nodes, laid out over streams.
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
  // A graph that has one executable graph at a time, and has it: another one than `but`.
  static bool holdsAlone(const Graph& graph, const GraphExec* but = nullptr);
  // Takes over the parameters of a graph of the same shape.
  CUresult update(Graph& from, CUgraphExecUpdateResultInfo& info);
  // The copy of a node of the graph it was made of; null when it has none.
  GraphNode* find(const GraphNode& original);
  bool isEnabled(const GraphNode& node) const;
  void setEnabled(const GraphNode& node, bool isEnabled);
  CUresult setWork(GraphNode& node, std::shared_ptr<const Work> work);
  CUresult setChild(GraphNode& node, Graph& from);

  // What kernels launch is as it was when it was brought to the device last (`cuGraphUpload`, or a launch by the host),
  // in the order of the stream.
  void upload(const std::shared_ptr<Stream>& stream);
  bool isUploaded() const;
  std::vector<std::shared_ptr<const Work>> uploaded() const;
  bool isForKernels() const { return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0; }
  // Of its first node that has one; null: none has.
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
    std::shared_ptr<Context> context;  // null: that of the launch
    std::shared_ptr<Stream> stream;    // of its own; the first lane may run on the launch's
    size_t last = 0;                   // step
  };
  std::vector<size_t> flatten(const Graph& graph, const std::vector<size_t>& after);
  void assignLanes();
  CUresult openMemory();
  std::function<void()> uploadLocked();

  mutable std::mutex mutex_;
  std::shared_ptr<Graph> graph_;
  uint64_t source_ = 0;  // the graph that it was made of, or updated from last
  std::vector<Step> steps_;
  std::vector<Lane> lanes_;
  std::set<const GraphNode*> disabled_;
  bool isUploaded_ = false;
  std::vector<std::shared_ptr<const Work>> uploaded_;
  Dependency last_{};
};

HandleTable<GraphExec>& executables();

// Runs a graph on the calling thread, one node after the other.
CUresult runInline(const Graph& graph, const std::shared_ptr<Stream>& stream);

}  // namespace shoal
