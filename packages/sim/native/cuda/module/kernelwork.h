// A kernel launch.
#pragma once

#include <map>

#include "graph/work.h"
#include "module.h"
#include "ptx/shape.h"

namespace shoal {

using LaunchAttributes = std::map<int, CUlaunchAttributeValue>;

class KernelWork : public Work {
 public:
  // Finds the kernel and copies its arguments.
  static CUresult create(CUfunction function, const std::shared_ptr<Context>& context, const ptx::LaunchShape& shape,
                         LaunchAttributes attributes, void** pointers, void** extra, std::shared_ptr<KernelWork>& work);
  // The same launch with other attributes.
  std::shared_ptr<KernelWork> with(LaunchAttributes attributes) const;
  // Keeps only the attributes of nodes, when the stream captures the launch.
  void becomeNode(const Stream& stream);

  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_KERNEL; }
  std::shared_ptr<Context> context() const override { return module->context; }
  bool launchesGraphs() const override { return function->kernel->launchesGraphs; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override;
  // The parameters for a query. The arrays they point to live as long as this object.
  CUDA_KERNEL_NODE_PARAMS parameters() const;

  std::shared_ptr<LoadedFunction> function;
  std::shared_ptr<LoadedModule> module;
  ptx::LaunchShape shape;
  LaunchAttributes attributes;

 private:
  void applyAttributes();
  std::vector<uint8_t> arguments_;
  mutable std::vector<void*> pointers_;
};

}  // namespace shoal
