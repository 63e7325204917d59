// Graphs: built with the function of each node kind, or captured, and read back.
#include <algorithm>
#include <array>
#include <cstring>

#include "launchAttributes.h"

namespace {

struct Build {
  const Json& given;
  Named named;
  CUcontext context = nullptr;
  std::map<CUgraphNode, std::vector<CUgraph>> bodies;
  std::vector<CUstream> streams;
};

void doNothing(void*) {}

unsigned axis(const Json& sizes, size_t index) { return static_cast<unsigned>(sizes[index].integer(1)); }

// Returns the kernel of a step, after allowing it the step's shared memory.
CUfunction kernelOf(const Json& step, const Build& build) {
  const CUfunction kernel = ::kernelOf(build.given["ptx"].text(), step["kernel"].text());
  const auto wanted = static_cast<int>(step["sharedMemory"].integer(0));
  int most;
  check(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel));
  if (wanted > most) check(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, wanted));
  return kernel;
}

// Holds the arguments of a kernel, and the pointers to them.
struct Arguments {
  std::vector<std::array<unsigned char, 8>> values;
  std::vector<void*> pointers;

  Arguments(const Json& given, const Build& build) : values(given.size()) {
    for (size_t index = 0; index < given.size(); ++index) {
      const Json& one = given[index];
      const unsigned long long word = one.items().empty() ? one.integer() : build.named.address(one);
      memcpy(values[index].data(), &word, sizeof word);
    }
    for (auto& value : values) pointers.push_back(value.data());
  }
};

CUDA_MEMSET_NODE_PARAMS fillOf(const Json& step, const Build& build) {
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = build.named.address(step["to"]);
  fill.value = static_cast<unsigned>(step["value"].integer());
  fill.elementSize = static_cast<unsigned>(step["bits"].integer() / 8);
  fill.width = step["count"].integer();
  fill.height = 1;
  return fill;
}

std::vector<CUstreamBatchMemOpParams> wordsOf(const Json& step, const Build& build) {
  std::vector<CUstreamBatchMemOpParams> words;
  for (const Json& one : step["operations"].items()) {
    CUstreamBatchMemOpParams made;
    memset(&made, 0, sizeof made);
    const bool isWide = one["bits"].integer() == 64;
    if (one["operation"].text() == "write") {
      made.operation = isWide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
      made.writeValue.address = build.named.address(one["memory"]);
      made.writeValue.value64 = one["value"].integer();
    } else {
      made.operation = isWide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
      made.waitValue.address = build.named.address(one["memory"]);
      made.waitValue.value64 = one["value"].integer();
      const std::string& condition = one["condition"].text();
      made.waitValue.flags = condition == "eq"    ? CU_STREAM_WAIT_VALUE_EQ
                             : condition == "and" ? CU_STREAM_WAIT_VALUE_AND
                             : condition == "nor" ? CU_STREAM_WAIT_VALUE_NOR
                                                  : CU_STREAM_WAIT_VALUE_GEQ;
    }
    words.push_back(made);
  }
  return words;
}

void addSteps(Build& build, CUgraph graph, const Json& steps);

CUgraphNode addStep(Build& build, CUgraph graph, const Json& step, const std::vector<CUgraphNode>& behind) {
  CUgraphNode node = nullptr;
  const std::string& kind = step["do"].text();
  const CUgraphNode* first = behind.data();
  const size_t count = behind.size();
  if (kind == "kernel") {
    Arguments arguments(step["args"], build);
    CUDA_KERNEL_NODE_PARAMS kernel = {};
    kernel.func = kernelOf(step, build);
    kernel.gridDimX = axis(step["grid"], 0);
    kernel.gridDimY = axis(step["grid"], 1);
    kernel.gridDimZ = axis(step["grid"], 2);
    kernel.blockDimX = axis(step["block"], 0);
    kernel.blockDimY = axis(step["block"], 1);
    kernel.blockDimZ = axis(step["block"], 2);
    kernel.sharedMemBytes = static_cast<unsigned>(step["sharedMemory"].integer(0));
    kernel.kernelParams = arguments.pointers.data();
    check(cuGraphAddKernelNode(&node, graph, first, count, &kernel));
    for (auto& attribute : launchAttributes(step["attributes"], build.named))
      check(cuGraphKernelNodeSetAttribute(node, attribute.id, &attribute.value));
  } else if (kind == "fill") {
    const auto fill = fillOf(step, build);
    check(cuGraphAddMemsetNode(&node, graph, first, count, &fill, build.context));
  } else if (kind == "copy") {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = build.named.address(step["from"]);
    copy.dstDevice = build.named.address(step["to"]);
    copy.WidthInBytes = step["bytes"].integer();
    copy.Height = copy.Depth = 1;
    check(cuGraphAddMemcpyNode(&node, graph, first, count, &copy, build.context));
  } else if (kind == "host") {
    const CUDA_HOST_NODE_PARAMS host = {doNothing, nullptr};
    check(cuGraphAddHostNode(&node, graph, first, count, &host));
  } else if (kind == "empty") {
    check(cuGraphAddEmptyNode(&node, graph, first, count));
  } else if (kind == "record") {
    check(cuGraphAddEventRecordNode(&node, graph, first, count, build.named.events.at(step["event"].text())));
  } else if (kind == "wait") {
    check(cuGraphAddEventWaitNode(&node, graph, first, count, build.named.events.at(step["event"].text())));
  } else if (kind == "words") {
    auto words = wordsOf(step, build);
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {};
    batch.ctx = build.context;
    batch.count = static_cast<unsigned>(words.size());
    batch.paramArray = words.data();
    check(cuGraphAddBatchMemOpNode(&node, graph, first, count, &batch));
  } else if (kind == "allocate") {
    CUDA_MEM_ALLOC_NODE_PARAMS allocation = {};
    allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    allocation.bytesize = step["bytes"].integer();
    check(cuGraphAddMemAllocNode(&node, graph, first, count, &allocation));
    build.named.memory[step["name"].text()] = {allocation.dptr, allocation.bytesize};
  } else if (kind == "free") {
    check(cuGraphAddMemFreeNode(&node, graph, first, count, build.named.memory.at(step["name"].text()).first));
  } else if (kind == "graph") {
    CUgraph child;
    check(cuGraphCreate(&child, 0));
    addSteps(build, child, step["steps"]);
    check(cuGraphAddChildGraphNode(&node, graph, first, count, child));
    check(cuGraphDestroy(child));
  } else if (kind == "conditional") {
    const std::string& type = step["type"].text();
    CUgraphNodeParams parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    auto& conditional = parameters.conditional;
    conditional.type = type == "while"    ? CU_GRAPH_COND_TYPE_WHILE
                       : type == "switch" ? CU_GRAPH_COND_TYPE_SWITCH
                                          : CU_GRAPH_COND_TYPE_IF;
    conditional.size = static_cast<unsigned>(step["bodies"].size());
    conditional.ctx = build.context;
    check(cuGraphConditionalHandleCreate(&conditional.handle, graph, build.context,
                                         static_cast<unsigned>(step["value"].integer(0)),
                                         step["value"] ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0));
    check(cuGraphAddNode(&node, graph, first, nullptr, count, &parameters));
    for (size_t index = 0; index < step["bodies"].size(); ++index) {
      build.bodies[node].push_back(conditional.phGraph_out[index]);
      addSteps(build, conditional.phGraph_out[index], step["bodies"][index]);
    }
  } else {
    throw std::runtime_error("no such step: " + kind);
  }
  return node;
}

void addSteps(Build& build, CUgraph graph, const Json& steps) {
  std::vector<CUgraphNode> nodes;
  for (const Json& step : steps.items()) {
    std::vector<CUgraphNode> behind;
    for (const Json& index : step["after"].items()) behind.push_back(nodes.at(index.integer()));
    nodes.push_back(addStep(build, graph, step, behind));
  }
}

// Queues the same steps on streams.
void queueStep(Build& build, const Json& step) {
  const CUstream stream = build.streams.at(step["stream"].integer(0));
  const std::string& kind = step["do"].text();
  if (kind == "kernel") {
    Arguments arguments(step["args"], build);
    auto attributes = launchAttributes(step["attributes"], build.named);
    CUlaunchConfig config = {};
    config.gridDimX = axis(step["grid"], 0);
    config.gridDimY = axis(step["grid"], 1);
    config.gridDimZ = axis(step["grid"], 2);
    config.blockDimX = axis(step["block"], 0);
    config.blockDimY = axis(step["block"], 1);
    config.blockDimZ = axis(step["block"], 2);
    config.sharedMemBytes = static_cast<unsigned>(step["sharedMemory"].integer(0));
    config.hStream = stream;
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    check(cuLaunchKernelEx(&config, kernelOf(step, build), arguments.pointers.data(), nullptr));
  } else if (kind == "fill") {
    const auto fill = fillOf(step, build);
    if (fill.elementSize == 1)
      check(cuMemsetD8Async(fill.dst, static_cast<unsigned char>(fill.value), fill.width, stream));
    else if (fill.elementSize == 2)
      check(cuMemsetD16Async(fill.dst, static_cast<unsigned short>(fill.value), fill.width, stream));
    else check(cuMemsetD32Async(fill.dst, fill.value, fill.width, stream));
  } else if (kind == "copy") {
    check(cuMemcpyDtoDAsync(build.named.address(step["to"]), build.named.address(step["from"]), step["bytes"].integer(),
                            stream));
  } else if (kind == "host") {
    check(cuLaunchHostFunc(stream, doNothing, nullptr));
  } else if (kind == "words") {
    auto words = wordsOf(step, build);
    check(cuStreamBatchMemOp(stream, static_cast<unsigned>(words.size()), words.data(), 0));
  } else if (kind == "allocate") {
    CUdeviceptr address;
    check(cuMemAllocAsync(&address, step["bytes"].integer(), stream));
    build.named.memory[step["name"].text()] = {address, step["bytes"].integer()};
  } else if (kind == "free") {
    check(cuMemFreeAsync(build.named.memory.at(step["name"].text()).first, stream));
  } else if (kind == "follow") {
    const CUevent event = build.named.events.at("order");
    check(cuEventRecord(event, build.streams.at(step["behind"].integer())));
    check(cuStreamWaitEvent(stream, event, 0));
  } else {
    throw std::runtime_error("no such step of a stream: " + kind);
  }
}

std::string read(CUgraph graph, const Build& build);

std::string readEnd(CUmemorytype type, CUarray array, const void* host, CUdeviceptr address, const Build& build) {
  if (type == CU_MEMORYTYPE_ARRAY) return json(array != nullptr);
  return build.named.place(type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : address);
}

std::string readNode(CUgraphNode node, const std::vector<CUgraphNode>& nodes, const Build& build) {
  Fields fields;
  CUgraphNodeType type;
  check(cuGraphNodeGetType(node, &type));
  fields.add("type", int(type));
  const auto indices = [&](auto ask) {
    size_t count = 0;
    check(ask(nullptr, nullptr, &count));
    std::vector<CUgraphNode> found(count);
    std::vector<CUgraphEdgeData> data(count);
    if (count > 0) check(ask(found.data(), data.data(), &count));
    std::vector<size_t> places;
    for (const CUgraphNode one : found) places.push_back(std::find(nodes.begin(), nodes.end(), one) - nodes.begin());
    std::sort(places.begin(), places.end());
    Items items;
    for (const size_t place : places) items.add(place);
    return items.str();
  };
  fields.raw("dependencies", indices([&](auto... rest) { return cuGraphNodeGetDependencies(node, rest...); }));
  fields.raw("dependents", indices([&](auto... rest) { return cuGraphNodeGetDependentNodes(node, rest...); }));
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS kernel;
      check(cuGraphKernelNodeGetParams(node, &kernel));
      const char* name = nullptr;
      if (kernel.func != nullptr) check(cuFuncGetName(&name, kernel.func));
      else check(cuKernelGetName(&name, kernel.kern));
      fields.add("name", name).add("sharedMemory", kernel.sharedMemBytes);
      fields.raw("grid", Items().add(kernel.gridDimX).add(kernel.gridDimY).add(kernel.gridDimZ).str());
      fields.raw("block", Items().add(kernel.blockDimX).add(kernel.blockDimY).add(kernel.blockDimZ).str());
      fields.raw("attributes", readAttributes(node, build.named));
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CUDA_MEMCPY3D copy;
      check(cuGraphMemcpyNodeGetParams(node, &copy));
      fields.raw("from", readEnd(copy.srcMemoryType, copy.srcArray, copy.srcHost, copy.srcDevice, build));
      fields.raw("to", readEnd(copy.dstMemoryType, copy.dstArray, copy.dstHost, copy.dstDevice, build));
      fields.raw(
          "fromPlace",
          Items().add(copy.srcXInBytes).add(copy.srcY).add(copy.srcZ).add(copy.srcPitch).add(copy.srcHeight).str());
      fields.raw(
          "toPlace",
          Items().add(copy.dstXInBytes).add(copy.dstY).add(copy.dstZ).add(copy.dstPitch).add(copy.dstHeight).str());
      fields.raw("extent", Items().add(copy.WidthInBytes).add(copy.Height).add(copy.Depth).str());
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS fill;
      check(cuGraphMemsetNodeGetParams(node, &fill));
      fields.raw("to", build.named.place(fill.dst)).add("value", fill.value).add("elementBytes", fill.elementSize);
      fields.raw("extent", Items().add(fill.width).add(fill.height).add(fill.pitch).str());
      break;
    }
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child;
      check(cuGraphChildGraphNodeGetGraph(node, &child));
      fields.raw("graph", read(child, build));
      break;
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
      CUevent event;
      check(cuGraphEventRecordNodeGetEvent(node, &event));
      fields.raw("event", build.named.event(event));
      break;
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: {
      CUevent event;
      check(cuGraphEventWaitNodeGetEvent(node, &event));
      fields.raw("event", build.named.event(event));
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS allocation;
      check(cuGraphMemAllocNodeGetParams(node, &allocation));
      fields.raw("memory", build.named.place(allocation.dptr)).add("bytes", allocation.bytesize);
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE: {
      CUdeviceptr address;
      check(cuGraphMemFreeNodeGetParams(node, &address));
      fields.raw("memory", build.named.place(address));
      break;
    }
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
      check(cuGraphBatchMemOpNodeGetParams(node, &batch));
      fields.add("count", batch.count);
      break;
    }
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
      const auto found = build.bodies.find(node);
      Items bodies;
      if (found != build.bodies.end())
        for (const CUgraph body : found->second) bodies.raw(read(body, build));
      fields.raw("bodies", bodies.str());
      break;
    }
    default: break;
  }
  return fields.str();
}

std::string read(CUgraph graph, const Build& build) {
  size_t count = 0;
  check(cuGraphGetNodes(graph, nullptr, &count));
  std::vector<CUgraphNode> nodes(count);
  if (count > 0) check(cuGraphGetNodes(graph, nodes.data(), &count));
  Items list;
  for (const CUgraphNode node : nodes) list.raw(readNode(node, nodes, build));
  size_t edgeCount = 0;
  check(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edgeCount));
  std::vector<CUgraphNode> from(edgeCount), to(edgeCount);
  std::vector<CUgraphEdgeData> data(edgeCount);
  if (edgeCount > 0) check(cuGraphGetEdges(graph, from.data(), to.data(), data.data(), &edgeCount));
  const auto indexOf = [&](CUgraphNode node) { return std::find(nodes.begin(), nodes.end(), node) - nodes.begin(); };
  std::vector<std::array<long, 4>> edges;
  for (size_t at = 0; at < edgeCount; ++at)
    edges.push_back({indexOf(from[at]), indexOf(to[at]), data[at].from_port, data[at].type});
  std::sort(edges.begin(), edges.end());
  Items edgeList;
  for (const auto& edge : edges) {
    Items one;
    for (const long value : edge) one.add(value);
    edgeList.raw(one.str());
  }
  return Fields().raw("nodes", list.str()).raw("edges", edgeList.str()).str();
}

// Returns the content of the case's memory after a run of the graph.
std::string run(CUgraph graph, const Build& build) {
  return attempt([&] {
    for (const auto& [name, bytes] : build.named.memory) check(cuMemsetD8(bytes.first, 0, bytes.second));
    CUgraphExec exec;
    check(cuGraphInstantiate(&exec, graph, 0));
    Fields fields;
    cuuint64_t flags;
    check(cuGraphExecGetFlags(exec, &flags));
    fields.raw("flags", Fields()
                            .add("autoFreeOnLaunch", (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0)
                            .add("deviceLaunch", (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
                            .add("useNodePriority", (flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0)
                            .str());
    CUstream stream;
    check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int turn = 0; turn < 2; ++turn) check(cuGraphLaunch(exec, stream));
    check(cuStreamSynchronize(stream));
    check(cuStreamDestroy(stream));
    check(cuGraphExecDestroy(exec));
    for (const auto& [name, range] : build.named.memory) {
      std::vector<unsigned char> bytes(range.second);
      check(cuMemcpyDtoH(bytes.data(), range.first, bytes.size()));
      fields.raw(name, hex(bytes.data(), bytes.size()));
    }
    return fields.str();
  });
}

}  // namespace

std::string graphCase(const Json& given) {
  Build build{given, {}, nullptr, {}, {}};
  check(cuCtxGetCurrent(&build.context));
  const Json& memory = given["memory"];
  for (size_t index = 0; index < memory.size(); ++index) {
    CUdeviceptr made;
    check(cuMemAlloc(&made, memory[index].integer()));
    build.named.memory[memory.names()[index]] = {made, memory[index].integer()};
  }
  const Named lasting = build.named;
  for (const char* name : {"one", "two", "order"})
    check(cuEventCreate(&build.named.events[name], CU_EVENT_DISABLE_TIMING));
  CUgraph graph;
  if (given["build"].text() == "captured") {
    for (int index = 0; index < 2; ++index)
      check(cuStreamCreate(&build.streams.emplace_back(), CU_STREAM_NON_BLOCKING));
    check(cuStreamBeginCapture(build.streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CUresult refused = CUDA_SUCCESS;
    try {
      for (const Json& step : given["steps"].items()) queueStep(build, step);
    } catch (const Refused& one) {
      refused = one.code;
    }
    const CUresult ended = cuStreamEndCapture(build.streams[0], &graph);
    check(refused);
    check(ended);
  } else {
    check(cuGraphCreate(&graph, 0));
    addSteps(build, graph, given["steps"]);
  }
  Fields fields;
  fields.raw("graph", read(graph, build));
  fields.raw("clone", attempt([&] {
               CUgraph clone;
               check(cuGraphClone(&clone, graph));
               return read(clone, build);
             }));
  if (!given["notRun"].isTrue()) {
    Build only{given, lasting, build.context, {}, {}};
    fields.raw("run", run(graph, only));
  }
  check(cuGraphDestroy(graph));
  for (const auto& [name, range] : lasting.memory) check(cuMemFree(range.first));
  for (const auto& [name, event] : build.named.events) check(cuEventDestroy(event));
  for (const CUstream stream : build.streams) check(cuStreamDestroy(stream));
  return fields.str();
}
