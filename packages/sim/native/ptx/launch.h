// One run of a kernel: the state that its blocks share, the blocks, and the host threads that run them.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

#include "check.h"
#include "core/allocation.h"
#include "module.h"
#include "problem.h"
#include "shape.h"

namespace shoal {
class Context;
class GraphRun;
}  // namespace shoal

namespace shoal::ptx {

class Heap;
struct BoundTexture;
struct Cluster;

class Launch {
 public:
  Launch(std::shared_ptr<Context> context, std::shared_ptr<Module> module, const Kernel& kernel,
         const LaunchShape& shape, std::vector<uint8_t> parameters, std::shared_ptr<Heap> heap);
  ~Launch();
  // Runs on the calling thread and on pool threads. Returns when all blocks have ended.
  CUresult run();

  void work();  // the part of one thread
  void fail(CUresult status, const std::string& message);
  bool mustStop();
  // Finds memory that the kernel may access, and keeps it alive until the kernel has ended.
  void findRange(uint64_t address, unsigned size, bool isWrite, Range& range);
  void print(const std::string& text);
  // Binds a texture or surface object, and keeps its memory alive until the kernel has ended.
  const BoundTexture& bind(uint64_t handle, bool isSurface);

  const std::shared_ptr<Context> context;
  const std::shared_ptr<Module> module;
  const Kernel& kernel;
  const LaunchShape shape;
  const std::vector<uint8_t> parameters;
  const std::shared_ptr<Heap> heap;
  GraphRun* const graphRun;  // the run of the graph that this launch is a node of, if the graph's kernels launch graphs
  const uint64_t id;
  uint64_t clusters = 0;
  std::vector<uint64_t> gridWorkspace;  // holds the grid barrier's count in a cooperative launch

 private:
  friend class Worker;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> isStopped_{false};
  std::mutex mutex_;
  CUresult status_ = CUDA_SUCCESS;
  std::map<uint64_t, std::shared_ptr<Allocation>> held_;
  std::mutex texturesMutex_;
  std::map<uint64_t, std::shared_ptr<const BoundTexture>> textures_;
  std::string printed_;
  std::chrono::steady_clock::time_point end_{};
};

// A barrier of a block.
struct BlockBarrier {
  uint32_t expectedWarps = 0;  // 0: all warps
  uint32_t count = 0;
  bool isAll = true, isAny = false, isUsed = false;
};

struct Block {
  Launch* launch = nullptr;
  Cluster* cluster = nullptr;
  unsigned rank = 0;  // rank in the cluster
  uint64_t number = 0;
  unsigned x = 0, y = 0, z = 0;
  unsigned liveWarps = 0;
  uint8_t* shared = nullptr;
  uint8_t* local = nullptr;
  BlockBarrier barriers[16];
  std::vector<Warp> warps;
};

struct Cluster {
  std::vector<Block> blocks;
  unsigned x = 0, y = 0, z = 0;
  uint64_t phase = 0;
  uint32_t arrived = 0, liveThreads = 0;
  unsigned passes = 0;
  std::unique_ptr<Checker> checker;  // set if SHOAL_SIM_CHECK=1
};

// "block (0, 0, 0), thread (5, 0, 0), PTX line 12 (file.cu:3)"; without the block if `isSameBlock`.
std::string describePlace(const Launch& launch, const Warp& warp, int lane, uint32_t pc, bool isSameBlock);

enum class Outcome : uint8_t { finished, blocked, yielded };

class Worker {
 public:
  explicit Worker(Launch& launch);
  ~Worker();
  void run();

  Launch& launch;
  uint64_t boundHandle = 0;  // the object that was used last
  const BoundTexture* bound = nullptr;

 private:
  std::unique_ptr<Cluster> makeCluster();
  void start(Cluster& cluster, uint64_t number);
  Outcome run(Cluster& cluster, int budget);
  bool stopWaiting(Cluster& cluster);
  Outcome run(Warp& warp, int budget);
  int choose(Warp& warp);
  void merge(Warp& warp);
  struct Turn;
  bool runSplit(Warp& warp, size_t index, int& budget);
  void branchAway(Warp& warp, uint32_t mask, uint32_t pc, const Split& like);
  void exitLanes(Warp& warp, uint32_t mask);
  void arrive(Warp& warp, Split& split, const Instr& instr, uint32_t mask);
  void completeBarrier(Block& block, unsigned number);
  void checkClusterBarrier(Cluster& cluster);
  void finishBarrier(Warp& warp, const Instr& instr, uint32_t mask);
  void call(Warp& warp, Split& split, const Instr& instr, uint32_t& mask, uint32_t& pc);
  void callBuiltin(Warp& warp, const CallSite& site, uint32_t mask);
  void returnFrom(Warp& warp, Split& split, uint32_t mask, uint32_t& pc);
  Frame* makeFrame(const CodeOf& code, Frame* parent);
  void release(Frame* frame);
  std::string where() const;
  [[noreturn]] void failWaiting(const Cluster& cluster) const;

  std::vector<Range> ranges_;
  std::map<uint32_t, std::vector<Frame*>> freeFrames_;
  std::vector<std::unique_ptr<Cluster>> spare_;
  uint32_t localStride_ = 0;
  const Warp* current_ = nullptr;
  size_t running_ = 0;  // the split that runs
};

}  // namespace shoal::ptx
