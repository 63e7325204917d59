// Graphs with many parallel branches: few threads run them, and waiting branches never block the others.
#include <dirent.h>

#include <atomic>
#include <ctime>
#include <mutex>

#include "check.h"

using check::Primary;

namespace {

size_t countThreads() {
  size_t count = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

// A graph, its executable, and the maximum number of threads while it ran.
class Running {
 public:
  CUgraph graph = nullptr;
  CUstream stream = check::stream();
  size_t mostThreads = 0;

  Running() { OK(cuGraphCreate(&graph, 0)); }
  ~Running() {
    if (exec_ != nullptr) cuGraphExecDestroy(exec_);
    cuGraphDestroy(graph);
    cuStreamDestroy_v2(stream);
  }
  CUgraphNode host(CUhostFn function, void* data, std::vector<CUgraphNode> before = {}) {
    CUgraphNode node = nullptr;
    const CUDA_HOST_NODE_PARAMS wanted = {function, data};
    OK(cuGraphAddHostNode(&node, graph, before.data(), before.size(), &wanted));
    return node;
  }
  void launch() {
    if (exec_ == nullptr) OK(cuGraphInstantiate_v2(&exec_, graph, nullptr, nullptr, 0));
    OK(cuGraphLaunch(exec_, stream));
  }
  void wait() {
    CUresult status = CUDA_ERROR_NOT_READY;
    for (int turn = 0; turn < 300000 && status == CUDA_ERROR_NOT_READY; ++turn) {
      status = cuStreamQuery(stream);
      mostThreads = std::max(mostThreads, countThreads());
      usleep(1000);
    }
    OK(status);
  }

 private:
  CUgraphExec exec_ = nullptr;
};

struct Meeting {
  std::atomic<int> arrived{0};
  int expected;
  static void arrive(void* data) {
    auto& meeting = *static_cast<Meeting*>(data);
    ++meeting.arrived;
    while (meeting.arrived < meeting.expected) usleep(200);
  }
};

// A kernel of one thread that increments a counter and spins until all kernels have done so.
const char kMeet[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry meet(.param .u64 at, .param .u32 all) {
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %rd;
  ld.param.u64 %rd, [at];
  ld.param.u32 %r0, [all];
  atom.global.add.u32 %r1, [%rd], 1;
again:
  ld.volatile.global.u32 %r2, [%rd];
  setp.lt.u32 %p, %r2, %r0;
  @%p bra again;
  ret;
}
)";

}  // namespace

TEST(a_graph_of_30000_branches_runs_on_few_threads) {
  Primary primary;
  constexpr size_t branches = 30000;
  const CUdeviceptr memory = check::memory(branches);
  OK(cuMemsetD8_v2(memory, 0, branches));
  Running running;
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.elementSize = fill.width = fill.height = 1;
  for (size_t branch = 0; branch < branches; ++branch) {
    CUgraphNode node = nullptr;
    fill.dst = memory + branch;
    fill.value = 1;
    OK(cuGraphAddMemsetNode(&node, running.graph, nullptr, 0, &fill, primary.context));
  }
  for (int round = 0; round < 2; ++round) {
    running.launch();
    running.wait();
    std::vector<unsigned char> found(branches);
    OK(cuMemcpyDtoH_v2(found.data(), memory, branches));
    CHECK(found == std::vector<unsigned char>(branches, 1));
    OK(cuMemsetD8_v2(memory, 0, branches));
  }
  CHECK(running.mostThreads < 400);
  OK(cuMemFree_v2(memory));
}

TEST(host_functions_of_300_branches_that_wait_for_one_another_all_run) {
  Primary primary;
  Meeting meeting;
  meeting.expected = 300;
  Running running;
  for (int branch = 0; branch < meeting.expected; ++branch) running.host(&Meeting::arrive, &meeting);
  running.launch();
  running.wait();
  EQUAL(meeting.arrived.load(), 300);
}

TEST(host_functions_that_end_one_by_one_need_no_thread_each) {
  Primary primary;
  static std::mutex gate;
  Running running;
  for (int branch = 0; branch < 5000; ++branch) {
    running.host([](void*) { std::lock_guard lock(gate); }, nullptr);
  }
  running.launch();
  running.wait();
  CHECK(running.mostThreads < 400);
}

TEST(kernels_of_100_branches_that_spin_for_one_another_all_run) {
  Primary primary;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  OK(cuModuleLoadData(&module, kMeet));
  OK(cuModuleGetFunction(&kernel, module, "meet"));
  CUdeviceptr counter = check::memory(4);
  OK(cuMemsetD32_v2(counter, 0, 1));
  unsigned all = 100;
  void* arguments[] = {&counter, &all};
  Running running;
  CUDA_KERNEL_NODE_PARAMS wanted{};
  wanted.func = kernel;
  wanted.gridDimX = wanted.gridDimY = wanted.gridDimZ = wanted.blockDimX = wanted.blockDimY = wanted.blockDimZ = 1;
  wanted.kernelParams = arguments;
  for (unsigned branch = 0; branch < all; ++branch) {
    CUgraphNode node = nullptr;
    OK(cuGraphAddKernelNode_v2(&node, running.graph, nullptr, 0, &wanted));
  }
  running.launch();
  running.wait();
  unsigned found = 0;
  OK(cuMemcpyDtoH_v2(&found, counter, 4));
  EQUAL(found, 100);
  OK(cuMemFree_v2(counter));
  OK(cuModuleUnload(module));
}

TEST(branches_that_wait_for_words_leave_room_for_the_one_that_writes_them) {
  Primary primary;
  constexpr unsigned branches = 200;
  const CUdeviceptr words = check::memory(branches * 4);
  OK(cuMemsetD32_v2(words, 0, branches));
  Running running;
  // Each branch waits for the word that the next one writes, so no branch completes before the last one has run.
  for (unsigned branch = 0; branch < branches; ++branch) {
    CUstreamBatchMemOpParams operations[2] = {};
    operations[0].waitValue = {
        CU_STREAM_MEM_OP_WAIT_VALUE_32, words + (branch + 1) % branches * 4, {1}, CU_STREAM_WAIT_VALUE_GEQ, 0};
    operations[1].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, words + branch * 4, {1}, 0, 0};
    CUDA_BATCH_MEM_OP_NODE_PARAMS wanted = {primary.context, branch + 1 == branches ? 1u : 2u,
                                            branch + 1 == branches ? operations + 1 : operations, 0};
    CUgraphNode node = nullptr;
    OK(cuGraphAddBatchMemOpNode(&node, running.graph, nullptr, 0, &wanted));
  }
  running.launch();
  running.wait();
  std::vector<unsigned> found(branches);
  OK(cuMemcpyDtoH_v2(found.data(), words, branches * 4));
  CHECK(found == std::vector<unsigned>(branches, 1));
  OK(cuMemFree_v2(words));
}

TEST(branches_keep_the_order_of_their_edges) {
  Primary primary;
  // A ladder: each rung depends on both ends of the previous rung.
  static std::atomic<int> errors, done;
  errors = done = 0;
  struct Rung {
    std::atomic<int> ended{0};
    Rung* before = nullptr;
  };
  static Rung rungs[200];
  Running running;
  std::vector<CUgraphNode> last;
  for (int index = 0; index < 200; ++index) {
    rungs[index].ended = 0;
    rungs[index].before = index == 0 ? nullptr : &rungs[index - 1];
    const auto step = [](void* data) {
      auto& rung = *static_cast<Rung*>(data);
      if (rung.before != nullptr && rung.before->ended != 3) ++errors;
      ++rung.ended;
      ++done;
    };
    std::vector<CUgraphNode> next;
    for (int side = 0; side < 3; ++side) next.push_back(running.host(step, &rungs[index], last));
    last = next;
  }
  running.launch();
  running.wait();
  EQUAL(errors.load(), 0);
  EQUAL(done.load(), 600);
}

TEST(threads_of_branches_end_when_there_is_no_work) {
  Primary primary;
  Meeting meeting;
  meeting.expected = 20;
  Running running;
  for (int branch = 0; branch < meeting.expected; ++branch) running.host(&Meeting::arrive, &meeting);
  // Wait for threads of earlier tests to end: those of destroyed streams and of branches.
  const auto settles = [](size_t most) {
    for (int turn = 0; turn < 20000 && countThreads() > most; ++turn) usleep(1000);
    return countThreads() <= most;
  };
  CHECK(settles(2));
  running.launch();
  running.wait();
  CHECK(running.mostThreads >= 20);
  CHECK(settles(3));  // the stream's own thread remains
}

TEST(nested_moves_take_time_in_proportion_and_have_an_end) {
  Primary primary;
  constexpr int deepest = 4096;
  const auto put = [](CUgraph inner, CUgraph outer,
                      CUgraphChildGraphNodeOwnership ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    CUgraphNodeParams wanted{};
    wanted.type = CU_GRAPH_NODE_TYPE_GRAPH;
    wanted.graph.graph = inner;
    wanted.graph.ownership = ownership;
    CUgraphNode node = nullptr;
    return cuGraphAddNode_v2(&node, outer, nullptr, nullptr, 0, &wanted);
  };
  const auto create = [] {
    CUgraph made = nullptr;
    OK(cuGraphCreate(&made, 0));
    return made;
  };
  CUgraph inner = create();
  const clock_t start = clock();  // CPU time, because the machine may be busy
  for (int depth = 1; depth < deepest; ++depth) {
    CUgraph outer = create();
    OK(put(inner, outer));
    inner = outer;
  }
  // It would take minutes if each move visited all nested graphs.
  CHECK(clock() - start < 20 * CLOCKS_PER_SEC);
  // A deeper graph would overflow the stack, because many operations recurse over nested graphs.
  CUgraph outer = create();
  EQUAL(put(inner, outer), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(put(inner, outer, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE), CUDA_ERROR_NOT_SUPPORTED);
  OK(cuGraphDestroy(outer));
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiate_v2(&exec, inner, nullptr, nullptr, 0));
  const CUstream stream = check::stream();
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(inner));
  OK(cuStreamDestroy_v2(stream));
}

// The counts of nested graphs stay correct when nested graphs are added, changed and removed.
TEST(graphs_know_the_memory_of_graphs_inside) {
  Primary primary;
  const auto create = [] {
    CUgraph made = nullptr;
    OK(cuGraphCreate(&made, 0));
    return made;
  };
  const auto allocate = [](CUgraph graph) {
    CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
    wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    wanted.bytesize = 4096;
    CUgraphNode node = nullptr;
    return cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &wanted);
  };
  const auto put = [](CUgraph inner, CUgraph outer, CUgraphChildGraphNodeOwnership ownership, CUgraphNode* node) {
    CUgraphNodeParams wanted{};
    wanted.type = CU_GRAPH_NODE_TYPE_GRAPH;
    wanted.graph.graph = inner;
    wanted.graph.ownership = ownership;
    return cuGraphAddNode_v2(node, outer, nullptr, nullptr, 0, &wanted);
  };
  const auto isCloneable = [](CUgraph graph) {
    CUgraph clone = nullptr;
    const CUresult status = cuGraphClone(&clone, graph);
    if (status == CUDA_SUCCESS) OK(cuGraphDestroy(clone));
    else EQUAL(status, CUDA_ERROR_NOT_SUPPORTED);
    return status == CUDA_SUCCESS;
  };
  CUgraph inner = create(), middle = create(), outer = create();
  CUgraphNode node = nullptr, kept = nullptr;
  CHECK(isCloneable(outer));
  OK(allocate(inner));
  CHECK(!isCloneable(inner));
  OK(put(inner, middle, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &node));
  CHECK(!isCloneable(middle));
  CHECK(isCloneable(outer));
  OK(put(middle, outer, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &node));
  CHECK(!isCloneable(outer));
  // A nested graph that is changed through its own handle.
  CUgraph plain = create(), whole = create(), part = nullptr;
  OK(put(plain, whole, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, &kept));
  OK(cuGraphChildGraphNodeGetGraph(kept, &part));
  CHECK(isCloneable(whole));
  EQUAL(put(whole, part, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &node), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroyNode(kept));
  CHECK(isCloneable(whole));
  for (CUgraph graph : {outer, plain, whole}) OK(cuGraphDestroy(graph));
}
