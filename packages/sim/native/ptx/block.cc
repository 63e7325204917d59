// Blocks and clusters: created, started, and run warp by warp on one host thread.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "launch.h"

namespace shoal::ptx {

namespace {

constexpr int kBudget = 4096;          // backward branches and calls until the next warp runs
constexpr int kSmallBudget = 512;      // the budget while several blocks alternate
constexpr unsigned kPatience = 16;     // rounds without an end until another block is started as well
constexpr size_t kMostResident = 128;  // the maximum of a cooperative launch
constexpr unsigned kIdleMicroseconds = 1000;
constexpr uint32_t kStackOfRecursion = 64 << 10;

uint8_t* mapZeroes(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return static_cast<uint8_t*>(at);
}

}  // namespace

Worker::Worker(Launch& launch) : launch(launch), ranges_(launch.module->program.slots) {
  uint64_t bytes = launch.kernel.localBytes;
  if (launch.kernel.isRecursive) bytes += kStackOfRecursion;
  localStride_ = static_cast<uint32_t>((bytes + 15) & ~uint64_t{15});
}

Worker::~Worker() {
  const size_t warps = (launch.shape.block.count() + kLanes - 1) / kLanes;
  for (auto& cluster : spare_) {
    for (Block& block : cluster->blocks) {
      free(block.shared);
      if (block.local != nullptr) munmap(block.local, warps * kLanes * localStride_);
    }
  }
  for (auto& each : freeFrames_) {
    for (Frame* frame : each.second) {
      free(frame->registers);
      delete frame;
    }
  }
}

std::unique_ptr<Cluster> Worker::makeCluster() {
  auto made = std::make_unique<Cluster>();
  const LaunchShape& shape = launch.shape;
  uint32_t sharedBytes =
      shape.dynamicSharedBytes == 0 ? launch.kernel.sharedBytes : launch.kernel.dynamicBase + shape.dynamicSharedBytes;
  if (launch.module->program.usesReservedShared) sharedBytes = (sharedBytes + 127) / 128 * 128 + kReservedSharedBytes;
  const uint64_t threads = shape.block.count();
  const size_t warps = (threads + kLanes - 1) / kLanes;
  made->blocks.resize(shape.cluster.count());
  if (isChecking()) made->checker = std::make_unique<Checker>(launch, *made);
  for (Block& block : made->blocks) {
    block.launch = &launch;
    block.cluster = made.get();
    block.rank = static_cast<unsigned>(&block - made->blocks.data());
    block.shared = static_cast<uint8_t*>(aligned_alloc(128, (sharedBytes + 255) / 128 * 128));
    if (block.shared == nullptr) throw std::bad_alloc();
    memset(block.shared, 0, (sharedBytes + 255) / 128 * 128);
    block.local = mapZeroes(warps * kLanes * localStride_);
    block.warps.resize(warps);
    for (size_t index = 0; index < warps; ++index) {
      Warp& warp = block.warps[index];
      warp.constants = launch.module->program.constants;
      warp.local = block.local == nullptr ? nullptr : block.local + index * kLanes * localStride_;
      warp.localStride = localStride_;
      warp.shared = block.shared;
      warp.sharedBytes = sharedBytes;
      warp.parameters = launch.parameters.data();
      warp.parameterBytes = static_cast<uint32_t>(launch.parameters.size());
      warp.operands = launch.module->program.operands.data();
      warp.index = static_cast<uint32_t>(index);
      warp.block = &block;
      warp.splits.reserve(kLanes + 8);
      for (int lane = 0; lane < kLanes; ++lane) {
        const uint64_t thread = index * kLanes + static_cast<size_t>(lane);
        warp.threadX[lane] = static_cast<uint32_t>(thread % shape.block.x);
        warp.threadY[lane] = static_cast<uint32_t>(thread / shape.block.x % shape.block.y);
        warp.threadZ[lane] = static_cast<uint32_t>(thread / shape.block.x / shape.block.y);
      }
    }
  }
  return made;
}

void Worker::start(Cluster& cluster, uint64_t number) {
  const LaunchShape& shape = launch.shape;
  const Dimensions &grid = shape.grid, &size = shape.cluster;
  const uint64_t across = grid.x / size.x, deep = grid.y / size.y;
  cluster.x = static_cast<unsigned>(number % across);
  cluster.y = static_cast<unsigned>(number / across % deep);
  cluster.z = static_cast<unsigned>(number / across / deep);
  cluster.phase = 0;
  cluster.arrived = 0;
  cluster.passes = 0;
  if (cluster.checker != nullptr) cluster.checker->start();
  const auto threads = static_cast<uint32_t>(shape.block.count());
  cluster.liveThreads = threads * static_cast<uint32_t>(cluster.blocks.size());
  const CodeOf& code = launch.module->program.functions[launch.kernel.function];
  for (Block& block : cluster.blocks) {
    block.x = cluster.x * size.x + block.rank % size.x;
    block.y = cluster.y * size.y + block.rank / size.x % size.y;
    block.z = cluster.z * size.z + block.rank / size.x / size.y;
    block.number = (static_cast<uint64_t>(block.z) * grid.y + block.y) * grid.x + block.x;
    block.liveWarps = static_cast<unsigned>(block.warps.size());
    for (auto& barrier : block.barriers) barrier = BlockBarrier();
    if (launch.module->program.usesReservedShared)
      memset(block.shared + block.warps[0].sharedBytes - kReservedSharedBytes, 0, kReservedSharedBytes);
    uint32_t left = threads;
    for (Warp& warp : block.warps) {
      warp.live = left >= kLanes ? ~0u : (1u << left) - 1;
      left -= left >= kLanes ? kLanes : left;
      memset(warp.arrived, 0, sizeof warp.arrived);
      warp.turn = 0;
      warp.checkedLane = -1;
      warp.clusterPhase = 0;
      warp.splits.clear();
      Split split;
      split.mask = warp.live;
      split.pc = code.entry;
      split.frame = makeFrame(code, nullptr);
      warp.splits.push_back(split);
    }
  }
}

// Called when all splits wait. The suspend time of those that wait for a phase has expired, so they may do other work.
// The thread sleeps, because it has nothing else to run.
bool Worker::stopWaiting(Cluster& cluster) {
  bool isOver = false;
  for (Block& block : cluster.blocks) {
    for (Warp& warp : block.warps) {
      for (Split& split : warp.splits) {
        if (split.wait != Wait::phase) continue;
        split.wait = Wait::ready;
        split.isReleased = isOver = true;
      }
    }
  }
  if (isOver) usleep(kIdleMicroseconds);
  return isOver;
}

// The message names one waiting thread, and a thread that waits at another place.
void Worker::failWaiting(const Cluster& cluster) const {
  std::string first, other;
  uint32_t line = 0;
  for (const Block& block : cluster.blocks) {
    for (const Warp& warp : block.warps) {
      for (const Split& split : warp.splits) {
        const uint32_t own = launch.module->program.code[split.pc].line;
        std::string place = describePlace(launch, warp, __builtin_ctz(split.mask), split.pc, !first.empty());
        if (first.empty()) first = std::move(place), line = own;
        else if (other.empty() && own != line) other = std::move(place);
      }
    }
  }
  throw Fault{CUDA_ERROR_LAUNCH_FAILED,
              first + ": a barrier that not all threads reach: all threads of the block wait, " +
                  (other.empty() ? "" : other + " elsewhere, ") + "and nobody is left to let them go on",
              true};
}

Outcome Worker::run(Cluster& cluster, int budget) {
  for (int rounds = 0;; ++rounds) {
    bool hasYielded = false, isLeft = false, hasMoved = false;
    for (Block& block : cluster.blocks) {
      for (Warp& warp : block.warps) {
        if (warp.splits.empty()) continue;
        isLeft = true;
        bool canRun = false;
        for (const Split& each : warp.splits)
          canRun = canRun || (each.wait != Wait::barrier && each.wait != Wait::phase);
        if (!canRun) continue;
        const uint64_t phase = cluster.phase;
        const uint32_t before = warp.splits[0].pc;
        current_ = &warp;
        const Outcome outcome = run(warp, budget);
        hasYielded = hasYielded || outcome == Outcome::yielded;
        hasMoved = hasMoved || outcome == Outcome::finished || phase != cluster.phase || warp.splits[0].pc != before;
      }
    }
    if (!isLeft) return Outcome::finished;
    // Warps that only run from barrier to barrier use no budget, so the rounds are limited as well.
    if (hasYielded || rounds >= kSmallBudget) return Outcome::yielded;
    if (hasMoved) continue;
    // The last warp to arrive has released the others, even if its own position did not change.
    bool isReady = false;
    for (Block& block : cluster.blocks) {
      for (Warp& warp : block.warps) {
        for (const Split& each : warp.splits) isReady = isReady || each.wait == Wait::ready;
      }
    }
    if (!isReady && stopWaiting(cluster)) return Outcome::yielded;
    if (!isReady) failWaiting(cluster);
  }
}

std::string describePlace(const Launch& launch, const Warp& warp, int lane, uint32_t pc, bool isSameBlock) {
  const Block& block = *warp.block;
  const Program& program = launch.module->program;
  char text[160];
  std::string out;
  if (!isSameBlock || block.cluster->blocks.size() > 1) {
    snprintf(text, sizeof text, "block (%u, %u, %u), ", block.x, block.y, block.z);
    out = text;
  }
  snprintf(text, sizeof text, "thread (%u, %u, %u), PTX line %u", warp.threadX[lane], warp.threadY[lane],
           warp.threadZ[lane], program.code[pc].line);
  out += text;
  if (pc >= program.sources.size() || program.sources[pc].line == 0) return out;
  auto file = program.files.find(program.sources[pc].file);
  return out + " (" + (file == program.files.end() ? "line" : file->second) + ":" +
         std::to_string(program.sources[pc].line) + ")";
}

// The place of the fault, as far as it is known. The lanes of a split run together, so without the checker the message
// names the first of them.
std::string Worker::where() const {
  if (current_ == nullptr || running_ >= current_->splits.size()) return "";
  const Split& split = current_->splits[running_];
  const int lane = current_->checkedLane >= 0 ? current_->checkedLane : __builtin_ctz(split.mask | 1u << 31);
  return describePlace(launch, *current_, lane, split.pc, false) + ": ";
}

void Worker::run() {
  std::vector<std::unique_ptr<Cluster>> resident;
  bool isMoreLeft = true;
  try {
    size_t at = 0;
    while (!launch.mustStop()) {
      bool mayStart = resident.empty();
      if (!mayStart && resident.size() < kMostResident) {
        bool allPatient = true;
        for (auto& each : resident) allPatient = allPatient && each->passes >= kPatience;
        mayStart = allPatient;
      }
      if (mayStart && isMoreLeft) {
        const uint64_t number = launch.next_.fetch_add(1, std::memory_order_relaxed);
        if (number >= launch.clusters) {
          isMoreLeft = false;
        } else {
          if (spare_.empty()) spare_.push_back(makeCluster());
          resident.push_back(std::move(spare_.back()));
          spare_.pop_back();
          start(*resident.back(), number);
          at = resident.size() - 1;
        }
      }
      if (resident.empty()) break;
      at %= resident.size();
      Cluster& cluster = *resident[at];
      const Outcome outcome = run(cluster, resident.size() > 1 ? kSmallBudget : kBudget);
      if (outcome == Outcome::finished) {
        spare_.push_back(std::move(resident[at]));
        resident.erase(resident.begin() + static_cast<ptrdiff_t>(at));
      } else {
        ++cluster.passes;
        ++at;
      }
    }
  } catch (const Fault& fault) {
    launch.fail(fault.status, fault.isLocated ? fault.message : where() + fault.message);
  } catch (const std::bad_alloc&) {
    launch.fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the host has too little memory");
  }
  for (auto& each : resident) {
    for (Block& block : each->blocks) {
      for (Warp& warp : block.warps) {
        for (Split& split : warp.splits) release(split.frame);
      }
    }
    spare_.push_back(std::move(each));
  }
}

}  // namespace shoal::ptx
