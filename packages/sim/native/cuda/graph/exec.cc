#include "exec.h"

#include <unordered_map>

#include "conditional.h"
#include "core/context.h"
#include "core/workers.h"
#include "fillwork.h"
#include "memory.h"

namespace shoal {

HandleTable<GraphExec>& executables() {
  static auto* table = new HandleTable<GraphExec>(11, "executable graphs");
  return *table;
}

namespace {

// The first node that a graph for kernels must not contain, and the reason; null if there is none. `context` gets the
// context of the first node that has one.
const GraphNode* notForKernels(const Graph& graph, std::shared_ptr<Context>& context, CUgraphInstantiateResult& why) {
  for (const GraphNode* node : graph.inOrder()) {
    why = checkForKernels(*node->work, context);
    if (why != CUDA_GRAPH_INSTANTIATE_SUCCESS) return node;
    if (!context) context = node->work->context();
    const auto* child = dynamic_cast<const ChildWork*>(node->work.get());
    const GraphNode* found = child == nullptr ? nullptr : notForKernels(*child->graph, context, why);
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace

CUresult GraphExec::create(Graph& graph, unsigned long long flags, std::shared_ptr<GraphExec>& exec,
                           CUgraphNode* errorNode, CUgraphInstantiateResult* result) {
  const bool isForKernels = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0;
  // An H200 does not report this flag for a graph that kernels launch.
  exec = std::make_shared<GraphExec>(isForKernels ? flags & ~CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : flags);
  const auto fail = [&](CUgraphInstantiateResult why, const GraphNode* node, CUresult status) {
    if (result != nullptr) *result = why;
    if (errorNode != nullptr) *errorNode = node == nullptr ? nullptr : node->handle();
    return status;
  };
  const auto order = graph.inOrder();
  if (order.empty() && !graph.nodes.empty())
    return fail(CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, nullptr, CUDA_ERROR_INVALID_VALUE);
  for (const GraphNode* node : order) {
    Operation unused;
    if (const CUresult status = node->work->prepare(nullptr, unused))
      return fail(CUDA_GRAPH_INSTANTIATE_ERROR, node, status);
  }
  if (isForKernels) {
    if (graph.nodes.empty() || (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0) {
      return fail(CUDA_GRAPH_INSTANTIATE_ERROR, nullptr, CUDA_ERROR_INVALID_VALUE);
    }
    std::shared_ptr<Context> context;
    CUgraphInstantiateResult why{};
    if (const GraphNode* node = notForKernels(graph, context, why)) return fail(why, node, CUDA_ERROR_INVALID_VALUE);
  }
  if (!hasValidBodies(graph)) return fail(CUDA_GRAPH_INSTANTIATE_ERROR, nullptr, CUDA_ERROR_INVALID_VALUE);
  if (hasUnusedCondition(graph))
    return fail(CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, nullptr, CUDA_ERROR_INVALID_VALUE);
  exec->graph_ = Graph::createOwned();
  if (const CUresult status = copyGraph(graph, *exec->graph_, true))
    return fail(CUDA_GRAPH_INSTANTIATE_ERROR, nullptr, status);
  exec->flatten(*exec->graph_, {});
  exec->assignLanes();
  exec->number = executables().reserve();
  exec->source_ = graph.number;
  if (result != nullptr) *result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

bool GraphExec::holdsAlone(const Graph& graph, const GraphExec* but) {
  if (graph.isCloneable()) return false;
  const auto all = executables().all();
  return std::any_of(all.begin(), all.end(),
                     [&](auto& exec) { return exec.get() != but && exec->source_ == graph.number; });
}

void GraphExec::upload(const std::shared_ptr<Stream>& stream) {
  if (!isForKernels()) return;
  std::lock_guard graphLock(graphMutex());
  std::lock_guard lock(mutex_);
  Operation operation;
  operation.run = [upload = uploadLocked()] {
    upload();
    return CUDA_SUCCESS;
  };
  stream->enqueue(std::move(operation));
}

std::function<void()> GraphExec::uploadLocked() {
  std::vector<std::shared_ptr<const Work>> works;
  for (const Step& step : steps_) {
    if (disabled_.count(step.node) == 0) works.push_back(step.node->work);
  }
  return [self = shared_from_this(), works = std::move(works)] {
    std::lock_guard lock(self->mutex_);
    self->uploaded_ = works;
    self->isUploaded_ = true;
  };
}

std::shared_ptr<Context> GraphExec::context() const {
  for (const Lane& lane : lanes_) {
    if (lane.context) return lane.context;
  }
  return nullptr;
}

bool GraphExec::isUploaded() const {
  std::lock_guard lock(mutex_);
  return isUploaded_;
}

std::vector<std::shared_ptr<const Work>> GraphExec::uploaded() const {
  std::lock_guard lock(mutex_);
  return uploaded_;
}

GraphExec::~GraphExec() {
  for (Lane& lane : lanes_) {
    if (lane.stream) lane.stream->close();
  }
}

// Adds the graph's nodes as steps after the steps `after`, with child graphs expanded. Returns the last steps.
std::vector<size_t> GraphExec::flatten(const Graph& graph, const std::vector<size_t>& after) {
  std::unordered_map<const GraphNode*, size_t> placed;
  for (GraphNode* node : graph.inOrder()) {
    std::vector<size_t> before;
    for (const Edge& edge : node->dependencies) before.push_back(placed[edge.node]);
    if (before.empty()) before = after;
    if (auto* child = dynamic_cast<const ChildWork*>(node->work.get())) {
      auto last = flatten(*child->graph, before);
      if (!last.empty()) before = std::move(last);
    }
    placed[node] = steps_.size();
    steps_.push_back({node, std::move(before)});
  }
  std::vector<size_t> last;
  for (const GraphNode* node : graph.leaves()) last.push_back(placed[node]);
  return last;
}

// A step continues the lane of the step before it. Parallel steps get separate lanes, so that independent branches may
// wait for each other.
void GraphExec::assignLanes() {
  for (size_t index = 0; index < steps_.size(); ++index) {
    Step& step = steps_[index];
    const auto context = step.node->work->context();
    const auto fits = [&](const Lane& lane) { return !context || !lane.context || lane.context == context; };
    size_t found = lanes_.size();
    for (const size_t before : step.after) {
      const size_t lane = steps_[before].lane;
      if (lanes_[lane].last == before && fits(lanes_[lane])) found = lane;
    }
    if (found == lanes_.size()) lanes_.push_back({context, nullptr, index});
    Lane& lane = lanes_[found];
    if (!lane.context) lane.context = context;
    lane.last = index;
    step.lane = found;
  }
}

GraphNode* GraphExec::find(const GraphNode& original) {
  for (Step& step : steps_) {
    if (step.node->original == original.number) return step.node;
  }
  return nullptr;
}

bool GraphExec::isEnabled(const GraphNode& node) const { return disabled_.count(&node) == 0; }

void GraphExec::setEnabled(const GraphNode& node, bool isEnabled) {
  std::lock_guard lock(mutex_);
  if (isEnabled) disabled_.erase(&node);
  else disabled_.insert(&node);
}

CUresult GraphExec::setWork(GraphNode& node, std::shared_ptr<const Work> work) {
  Operation unused;
  if (const CUresult status = work->prepare(nullptr, unused)) return status;
  if (isForKernels() && checkForKernels(*work, context()) != CUDA_GRAPH_INSTANTIATE_SUCCESS)
    return CUDA_ERROR_INVALID_VALUE;
  // The lanes were assigned for the context of the old node.
  if (work->context() != node.work->context()) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard graphLock(graphMutex());  // the same lock order as in launch()
  std::lock_guard lock(mutex_);
  node.work = std::move(work);
  return CUDA_SUCCESS;
}

namespace {

struct Mismatch {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  const GraphNode* node = nullptr;
  const GraphNode* from = nullptr;
};

// Pairs the nodes of two graphs with equal topology, by the order in which they were added.
Mismatch pairNodes(const Graph& to, const Graph& from, std::vector<std::pair<GraphNode*, const GraphNode*>>& pairs) {
  if (to.nodes.size() != from.nodes.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr, nullptr};
  const auto ours = to.inOrder(), theirs = from.inOrder();
  std::unordered_map<const GraphNode*, const GraphNode*> partner;
  for (size_t index = 0; index < ours.size(); ++index) {
    GraphNode *own = ours[index], *other = theirs[index];
    if (own->work->type() != other->work->type()) return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, own, other};
    bool isSame = own->dependencies.size() == other->dependencies.size();
    for (size_t at = 0; isSame && at < own->dependencies.size(); ++at)
      isSame = partner[own->dependencies[at].node] == other->dependencies[at].node;
    if (!isSame) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, own, other};
    partner[own] = other;
    const auto* child = dynamic_cast<const ChildWork*>(own->work.get());
    if (child != nullptr) {
      const auto found = pairNodes(*child->graph, *static_cast<const ChildWork*>(other->work.get())->graph, pairs);
      if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return found;
      continue;
    }
    if (const auto* conditional = dynamic_cast<const ConditionalWork*>(own->work.get())) {
      const auto* theirsWork = static_cast<const ConditionalWork*>(other->work.get());
      if (conditional->kind != theirsWork->kind || conditional->condition != theirsWork->condition ||
          conditional->bodies.size() != theirsWork->bodies.size()) {
        return {CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, own, other};
      }
      for (size_t at = 0; at < conditional->bodies.size(); ++at) {
        const auto found = pairNodes(*conditional->bodies[at], *theirsWork->bodies[at], pairs);
        if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return found;
      }
      continue;
    }
    if (own->work->context() != other->work->context())
      return {CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, own, other};
    // An H200 refuses an update that moves a fill to a different graph allocation.
    const auto* fill = dynamic_cast<const FillWork*>(own->work.get());
    if (fill != nullptr && graphMemoryAround(fill->parameters.dst) !=
                               graphMemoryAround(static_cast<const FillWork&>(*other->work).parameters.dst)) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR, own, nullptr};
    }
    pairs.emplace_back(own, other);
  }
  return {};
}

// The conditions that are reset at each launch, including conditions of nested graphs.
void collectConditions(const Graph& graph, std::vector<std::shared_ptr<Condition>>& to) {
  for (auto& condition : graph.conditions) {
    if (condition->isSetAtLaunch) to.push_back(condition);
  }
  for (auto& node : graph.nodes) {
    if (auto* child = dynamic_cast<const ChildWork*>(node->work.get())) collectConditions(*child->graph, to);
    auto* conditional = dynamic_cast<const ConditionalWork*>(node->work.get());
    if (conditional == nullptr) continue;
    for (auto& body : conditional->bodies) collectConditions(*body, to);
  }
}

}  // namespace

CUresult GraphExec::update(Graph& from, CUgraphExecUpdateResultInfo& info) {
  if (holdsAlone(from, this)) return CUDA_ERROR_NOT_SUPPORTED;
  std::vector<std::pair<GraphNode*, const GraphNode*>> pairs;
  Mismatch mismatch = pairNodes(*graph_, from, pairs);
  for (auto& [own, other] : pairs) {
    Operation unused;
    const bool isFit = !isForKernels() || checkForKernels(*other->work, context()) == CUDA_GRAPH_INSTANTIATE_SUCCESS;
    if (mismatch.result == CU_GRAPH_EXEC_UPDATE_SUCCESS &&
        (!isFit || other->work->prepare(nullptr, unused) != CUDA_SUCCESS)) {
      mismatch = {CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, own, other};
    }
  }
  if (mismatch.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && !hasValidBodies(from))
    mismatch.result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  info.result = mismatch.result;
  const GraphNode* original =
      mismatch.node == nullptr ? nullptr : findNode(reinterpret_cast<CUgraphNode>(mismatch.node->original));
  info.errorNode = original == nullptr ? nullptr : original->handle();
  info.errorFromNode = mismatch.from == nullptr ? nullptr : mismatch.from->handle();
  if (mismatch.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  std::lock_guard lock(mutex_);
  for (auto& [own, other] : pairs) own->work = other->work;
  source_ = from.number;
  return CUDA_SUCCESS;
}

CUresult GraphExec::setChild(GraphNode& node, Graph& from) {
  auto* child = dynamic_cast<const ChildWork*>(node.work.get());
  if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::pair<GraphNode*, const GraphNode*>> pairs;
  if (pairNodes(*child->graph, from, pairs).result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  const auto isFit = [&](auto& pair) {
    return checkForKernels(*pair.second->work, context()) == CUDA_GRAPH_INSTANTIATE_SUCCESS;
  };
  if (isForKernels() && !std::all_of(pairs.begin(), pairs.end(), isFit)) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  std::lock_guard lock(mutex_);
  for (auto& [own, other] : pairs) own->work = other->work;
  return CUDA_SUCCESS;
}

// Memory that the graph allocates and does not free belongs to the program until the program frees it.
CUresult GraphExec::openMemory() {
  std::set<GraphMemory*> opened;
  for (const Step& step : steps_) {
    if (auto* memory = allocatedBy(*step.node->work)) opened.insert(memory);
  }
  for (GraphMemory* memory : opened) {
    if (!memory->isOpen()) continue;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0) return CUDA_ERROR_INVALID_VALUE;
    memory->close();
  }
  for (const Step& step : steps_) {
    if (auto* memory = allocatedBy(*step.node->work)) memory->open();
    if (auto memory = freedBy(*step.node->work)) memory->close();
  }
  return CUDA_SUCCESS;
}

CUresult GraphExec::launch(const std::shared_ptr<Stream>& stream) {
  std::lock_guard graphLock(graphMutex());
  std::lock_guard lock(mutex_);
  std::vector<Operation> operations(steps_.size());
  std::vector<std::shared_ptr<Stream>> streams;
  for (size_t index = 0; index < lanes_.size(); ++index) {
    Lane& lane = lanes_[index];
    const auto& context = lane.context ? lane.context : stream->context;
    if (index == 0 && context == stream->context) {
      streams.push_back(stream);
      continue;
    }
    if (lane.stream && lane.stream->context != context) {
      lane.stream->close();
      lane.stream.reset();
    }
    if (!lane.stream) {
      lane.stream = std::make_shared<Stream>(context, StreamKind::branch, stream->priority);
      context->add(lane.stream);
    }
    streams.push_back(lane.stream);
  }
  // Start all threads before anything is queued, so that a launch cannot fail halfway.
  stream->ensureThread();
  const bool hasBranches = std::any_of(streams.begin(), streams.end(), [&](auto& each) { return each != stream; });
  const auto threads = hasBranches ? Workers::shared().lease() : nullptr;
  // Check all nodes before anything is queued. Preparing NCCL work already fixes its place among the other NCCL calls.
  for (const Step& step : steps_) {
    if (disabled_.count(step.node) != 0) continue;
    Operation unused;
    if (const CUresult status = step.node->work->prepare(nullptr, unused)) return status;
  }
  for (size_t index = 0; index < steps_.size(); ++index) {
    const Step& step = steps_[index];
    const bool isLeftOut = disabled_.count(step.node) != 0;
    const CUresult status = isLeftOut ? EmptyWork().prepare(stream, operations[index])
                                      : step.node->work->prepare(streams[step.lane], operations[index]);
    if (status != CUDA_SUCCESS) return status;
  }
  if (const CUresult status = openMemory()) return status;
  const auto upload = isForKernels() ? uploadLocked() : nullptr;
  const bool launchesGraphs =
      std::any_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.node->work->launchesGraphs(); });
  const auto run = isForKernels() || launchesGraphs ? std::make_shared<GraphRun>(shared_from_this()) : nullptr;

  std::vector<std::shared_ptr<Condition>> conditions;
  collectConditions(*graph_, conditions);
  Operation head;
  head.run = [conditions = std::move(conditions), upload, run] {
    if (upload) upload();
    if (run) run->begin(false);
    for (auto& condition : conditions) condition->value = condition->initial;
    return CUDA_SUCCESS;
  };
  // Launches of one graph run one after the other, on any streams.
  if (last_.stream && last_.stream != stream) head.after.push_back(last_);
  const Dependency start{stream, stream->enqueue(std::move(head))};
  std::vector<uint64_t> sequences(steps_.size());
  for (size_t index = 0; index < steps_.size(); ++index) {
    const Step& step = steps_[index];
    Operation& operation = operations[index];
    const auto& own = streams[step.lane];
    if (step.after.empty() && own != stream) operation.after.push_back(start);
    for (const size_t before : step.after) {
      if (steps_[before].lane != step.lane)
        operation.after.push_back({streams[steps_[before].lane], sequences[before]});
    }
    if (run) {
      operation.run = [run, own, node = std::move(operation.run)] { return run->runNode(own, node); };
    }
    auto queued = std::move(operation.queued);
    sequences[index] = own->enqueue(std::move(operation));
    if (queued) queued(own, sequences[index]);
  }
  Operation tail;
  tail.run = [run, stream, threads] { return run == nullptr ? CUDA_SUCCESS : run->runTails(stream); };
  for (size_t index = 0; index < lanes_.size(); ++index) {
    if (streams[index] != stream) tail.after.push_back({streams[index], sequences[lanes_[index].last]});
  }
  last_ = {stream, stream->enqueue(std::move(tail))};
  return CUDA_SUCCESS;
}

CUresult runInline(const Graph& graph, const std::shared_ptr<Stream>& stream) {
  for (GraphNode* node : graph.inOrder()) {
    if (stream->context->error != CUDA_SUCCESS) break;
    std::shared_ptr<const Work> work;
    {
      std::lock_guard lock(graphMutex());
      work = node->work;
    }
    if (auto* child = dynamic_cast<const ChildWork*>(work.get())) {
      if (const CUresult status = runInline(*child->graph, stream)) return status;
      continue;
    }
    Operation operation;
    if (const CUresult status = work->prepare(stream, operation)) return status;
    for (auto& dependency : operation.after) dependency.stream->waitFor(dependency.sequence);
    // The node counts as a part of the stream's running operation.
    if (operation.queued) operation.queued(stream, stream->running());
    if (const CUresult status = operation.run()) return status;
  }
  return CUDA_SUCCESS;
}

}  // namespace shoal
