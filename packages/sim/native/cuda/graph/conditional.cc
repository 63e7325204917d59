#include "conditional.h"

#include "core/context.h"
#include "exec.h"

namespace shoal {

namespace {

constexpr unsigned kMostBodies = 1024;

std::mutex& tableMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::unordered_map<uint64_t, Condition*>& table() {
  static auto* conditions = new std::unordered_map<uint64_t, Condition*>;
  return *conditions;
}

}  // namespace

Condition::~Condition() {
  std::lock_guard lock(tableMutex());
  table().erase(handle);
}

bool setCondition(uint64_t handle, unsigned value) {
  std::lock_guard lock(tableMutex());
  const auto found = table().find(handle);
  if (found == table().end()) return false;
  found->second->value = value;
  return true;
}

CUresult ConditionalWork::copy(std::shared_ptr<const Work>& copy) const {
  std::vector<std::shared_ptr<Graph>> copies;
  for (auto& body : bodies) {
    copies.push_back(Graph::createOwned());
    if (const CUresult status = copyGraph(*body, *copies.back(), true)) return status;
  }
  copy = std::make_shared<ConditionalWork>(condition, kind, std::move(copies), owner);
  return CUDA_SUCCESS;
}

CUresult ConditionalWork::prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const {
  if (!stream) return CUDA_SUCCESS;
  // Prepare the bodies for each run, because a prepared operation runs only once.
  auto self = std::static_pointer_cast<const ConditionalWork>(shared_from_this());
  operation.run = [self, stream]() -> CUresult {
    const auto runBody = [&](size_t index) {
      return index < self->bodies.size() ? runInline(*self->bodies[index], stream) : CUDA_SUCCESS;
    };
    switch (self->kind) {
      case CU_GRAPH_COND_TYPE_IF:
        if (self->condition->value != 0) return runBody(0);
        return self->bodies.size() > 1 ? runBody(1) : CUDA_SUCCESS;
      case CU_GRAPH_COND_TYPE_WHILE:
        while (self->condition->value != 0) {
          if (stream->context->isEnding || stream->context->error != CUDA_SUCCESS) break;
          if (const CUresult status = runBody(0)) return status;
        }
        return CUDA_SUCCESS;
      default: return runBody(self->condition->value);
    }
  };
  return CUDA_SUCCESS;
}

bool hasValidBodies(const Graph& graph, bool isBody) {
  for (auto& node : graph.nodes) {
    const Work& work = *node->work;
    const auto type = work.type();
    const auto* child = dynamic_cast<const ChildWork*>(&work);
    const auto* conditional = dynamic_cast<const ConditionalWork*>(&work);
    const bool isPlain = type <= CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_EMPTY;
    // Refuse kernels that launch graphs. An H200 accepts them in a body and then hangs.
    if (isBody && work.launchesGraphs()) return false;
    if (isBody && !isPlain && child == nullptr && conditional == nullptr) return false;
    if (child != nullptr && !hasValidBodies(*child->graph, isBody)) return false;
    if (conditional == nullptr) continue;
    for (auto& body : conditional->bodies) {
      if (!hasValidBodies(*body, true)) return false;
    }
  }
  return true;
}

bool hasUnusedCondition(const Graph& graph) {
  std::set<std::shared_ptr<Condition>> unused(graph.conditions.begin(), graph.conditions.end());
  for (auto& node : graph.nodes) {
    if (auto* conditional = dynamic_cast<const ConditionalWork*>(node->work.get()))
      unused.erase(conditional->condition);
    auto* child = dynamic_cast<const ChildWork*>(node->work.get());
    if (child != nullptr && hasUnusedCondition(*child->graph)) return true;
  }
  return !unused.empty();
}

CUresult addConditional(Graph& graph, CUgraphNode* out, std::vector<Edge> dependencies,
                        CUDA_CONDITIONAL_NODE_PARAMS& parameters) {
  std::shared_ptr<Condition> condition;
  for (auto& own : graph.conditions) {
    if (own->handle == parameters.handle) condition = own;
  }
  if (!condition) return CUDA_ERROR_INVALID_VALUE;
  const auto kind = parameters.type;
  const bool isKnown = kind == CU_GRAPH_COND_TYPE_IF      ? parameters.size <= 2
                       : kind == CU_GRAPH_COND_TYPE_WHILE ? parameters.size == 1
                                                          : kind == CU_GRAPH_COND_TYPE_SWITCH;
  if (!isKnown || parameters.size == 0 || parameters.size > kMostBodies) return CUDA_ERROR_INVALID_VALUE;
  // A handle belongs to exactly one node.
  for (auto& node : graph.nodes) {
    auto* other = dynamic_cast<const ConditionalWork*>(node->work.get());
    if (other != nullptr && other->condition == condition) return CUDA_ERROR_INVALID_VALUE;
  }
  std::shared_ptr<Context> owner;
  if (parameters.ctx != nullptr) owner = state().contexts.find(parameters.ctx);
  else if (const CUresult status = currentContext(owner)) return status;
  if (!owner) return CUDA_ERROR_INVALID_CONTEXT;
  if (!graph.hasRoomFor(1)) return CUDA_ERROR_NOT_SUPPORTED;
  std::vector<std::shared_ptr<Graph>> bodies;
  for (unsigned index = 0; index < parameters.size; ++index) {
    bodies.push_back(Graph::createOwned());
    bodies.back()->isBody = true;
    bodies.back()->depthOfBody = graph.depth();
  }
  auto work = std::make_shared<ConditionalWork>(condition, kind, std::move(bodies), std::move(owner));
  parameters.phGraph_out = work->handles.data();
  *out = graph.add(std::move(work), std::move(dependencies))->handle();
  return CUDA_SUCCESS;
}

}  // namespace shoal

using namespace shoal;

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* pHandle_out, CUgraph hGraph, CUcontext ctx,
                                        unsigned int defaultLaunchValue, unsigned int flags) {
  return withGraph(hGraph, [&](Graph& graph) -> CUresult {
    if (pHandle_out == nullptr || flags > 1) return CUDA_ERROR_INVALID_VALUE;
    if (ctx != nullptr && !state().contexts.find(ctx)) return CUDA_ERROR_INVALID_CONTEXT;
    auto condition = std::make_shared<Condition>();
    condition->initial = condition->value = defaultLaunchValue;
    condition->isSetAtLaunch = flags == 1;
    static uint64_t last = uint64_t{13} << 44;
    *pHandle_out = condition->handle = ++last;
    {
      std::lock_guard lock(tableMutex());
      table()[last] = condition.get();
    }
    graph.conditions.push_back(std::move(condition));
    return CUDA_SUCCESS;
  });
}
