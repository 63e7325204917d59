// Launches of executable graphs from kernels of other graphs, or from their own.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/stream.h"
#include "work.h"

namespace shoal {

class GraphExec;

// One run of an executable graph whose kernels launch graphs.
class GraphRun {
 public:
  explicit GraphRun(std::shared_ptr<GraphExec> exec);
  ~GraphRun();

  // That of which the calling thread runs a node; null: none.
  static GraphRun* current();

  // What `%current_graph_exec` is: 0 where kernels may not launch the graph.
  uint64_t handle() const;
  // What a kernel calls (`cudaGraphLaunch`): gives a cudaError_t. Throws a Fault.
  unsigned launch(uint64_t graph, uint64_t how);

  // Runs one node, and what its kernel launched to run at once.
  CUresult runNode(const std::shared_ptr<Stream>& stream, const std::function<CUresult()>& node);
  // When the last node has ended: what kernels launched to run then, one after the other.
  CUresult runTails(const std::shared_ptr<Stream>& stream);
  std::vector<std::shared_ptr<GraphExec>> takeTails();

 private:
  const std::shared_ptr<GraphExec> exec_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<GraphExec>> fired_, tails_;
  size_t countOfFired_ = 0;
};

}  // namespace shoal
