// Memory that a graph allocates. Its address is fixed when the node is added. The memory is valid between its
// allocation node and its free node.
#pragma once

#include "graph.h"

namespace shoal {

class Device;

class GraphMemory : public std::enable_shared_from_this<GraphMemory> {
 public:
  // `context` may be null; the function then picks a context of the device.
  static CUresult create(const CUDA_MEM_ALLOC_NODE_PARAMS& parameters, std::shared_ptr<GraphMemory>& memory,
                         std::shared_ptr<Context> context = nullptr);
  GraphMemory(Device& device, uint64_t address, size_t size, std::weak_ptr<Allocation> allocation)
      : device(device), address(address), size(size), allocation_(std::move(allocation)) {}
  ~GraphMemory();

  // True until the memory's context has ended.
  bool isThere() const { return !allocation_.expired(); }
  // True from the launch that allocates the memory until the memory is freed.
  bool isOpen() const { return self_ != nullptr; }
  void open();
  void close() { self_ = nullptr; }
  // Counts as used from the first launch until the device's graph memory is trimmed, as on an H200.
  bool isUsed = false;

  Device& device;
  const uint64_t address;
  const size_t size;

 private:
  const std::weak_ptr<Allocation> allocation_;
  std::shared_ptr<GraphMemory> self_;  // open memory outlives its graph
};

class AllocWork : public Work {
 public:
  AllocWork(std::shared_ptr<GraphMemory> memory, const CUDA_MEM_ALLOC_NODE_PARAMS& given);
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override;
  const std::shared_ptr<GraphMemory> memory;
  const std::vector<CUmemAccessDesc> access;
  CUDA_MEM_ALLOC_NODE_PARAMS parameters;
};

class FreeWork : public Work {
 public:
  explicit FreeWork(CUdeviceptr address) : address(address) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override;
  const CUdeviceptr address;
};

GraphMemory* allocatedBy(const Work& work);
std::shared_ptr<GraphMemory> freedBy(const Work& work);
std::shared_ptr<GraphMemory> findGraphMemory(CUdeviceptr address);
// The graph memory that contains the address.
std::shared_ptr<GraphMemory> graphMemoryAround(CUdeviceptr address);
// For cuMemFree and cuMemFreeAsync: frees the memory and returns true if the address is graph memory.
bool freeGraphMemory(CUdeviceptr address, CUresult& status);

// The parameters of the allocation node for a captured cuMemAllocAsync: the size, and read-write access.
CUDA_MEM_ALLOC_NODE_PARAMS describeMemory(int device, size_t bytes);

}  // namespace shoal
