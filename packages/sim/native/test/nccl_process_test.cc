// NCCL with ranks in separate processes, also if one of them dies.
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "nccl_checks.h"

using check::Buffer;
using check::Primary;
using check::Rank;

namespace {

bool isSlow() { return getenv("SHOAL_TEST_SLOW") != nullptr; }

// The roles of a child, by name. A role gets its communicator and may end in any way.
int runChild(int count, char** arguments);
const bool isChildSet = (check::child = runChild, true);

struct Child {
  pid_t process;
};

Child start(const std::string& role, const ncclUniqueId& id, int ranks, int rank, int ranksHere = 1) {
  const pid_t process = fork();
  if (process != 0) return {process};
  std::string hex;
  for (const char byte : id.internal) {
    char two[3];
    snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    hex += two;
  }
  setenv("SHOAL_SIM_DEVICES", "8", 1);
  const std::string all = std::to_string(ranks), own = std::to_string(rank), here = std::to_string(ranksHere);
  execl("/proc/self/exe", "nccl_process_test", "--child", role.c_str(), hex.c_str(), all.c_str(), own.c_str(),
        here.c_str(), nullptr);
  _exit(127);
}

int wait(const Child& child) {
  int status = 0;
  waitpid(child.process, &status, 0);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

ncclUniqueId makeId() {
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  return id;
}

int segmentsLeft() {
  int count = 0;
  DIR* folder = opendir("/dev/shm");
  const std::string own = "shoal-nccl-" + std::to_string(getpid()) + "-";
  while (const dirent* entry = readdir(folder)) count += strncmp(entry->d_name, own.c_str(), own.size()) == 0;
  closedir(folder);
  return count;
}

void runRank(const std::string& role, const ncclUniqueId& id, int ranks, int rank) {
  Primary primary(rank);
  Rank self = {nullptr, check::stream(), rank, ranks};
  if (role == "timeout") {
    const auto start = std::chrono::steady_clock::now();
    EQUAL(ncclCommInitRank(&self.comm, ranks, id, rank), ncclSystemError);
    CHECK(self.comm == nullptr);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
    CHECK(strstr(ncclGetLastError(nullptr), "did not come") != nullptr);
    return;
  }
  if (role == "refused") {
    // Initialised in a group that fails, because the other ranks never come.
    NCCL(ncclGroupStart());
    NCCL(ncclCommInitRank(&self.comm, ranks, id, rank));
    EQUAL(ncclCommInitRank(&self.comm, ranks, id, ranks), ncclInvalidArgument);
    EQUAL(ncclGroupEnd(), ncclInvalidArgument);
    return;
  }
  if (role == "exits") {
    std::thread([&] { ncclCommInitRank(&self.comm, ranks, id, rank); }).detach();
    usleep(50000);
    exit(0);
  }
  if (role == "same device") {
    Primary first(0);
    EQUAL(ncclCommInitRank(&self.comm, ranks, id, rank), ncclInvalidUsage);
    CHECK(strstr(ncclGetLastError(nullptr), "both on CUDA device 0") != nullptr);
    return;
  }
  if (role == "rank twice") {
    // Both processes claim rank 0 of 2. One is refused at once; the other waits for a rank 1 that never comes.
    const ncclResult_t result = ncclCommInitRank(&self.comm, ranks, id, 0);
    CHECK(result == ncclInvalidUsage || result == ncclSystemError);
    return;
  }
  if (role == "killed in init" && rank == 1) {
    std::thread([&] { ncclCommInitRank(&self.comm, ranks, id, rank); }).detach();
    usleep(100000);
    kill(getpid(), SIGKILL);
  }
  if (role == "killed in init" && rank == 0) {
    const auto start = std::chrono::steady_clock::now();
    EQUAL(ncclCommInitRank(&self.comm, ranks, id, rank), ncclRemoteError);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(3));
    CHECK(strstr(ncclGetLastError(nullptr), "rank 1 ended") != nullptr);
    return;
  }
  NCCL(ncclCommInitRank(&self.comm, ranks, id, rank));
  Buffer buffer(4 << 20);
  const auto sum = [&](ncclComm_t comm, int own) {
    OK(cuMemcpyHtoD_v2(reinterpret_cast<CUdeviceptr>(buffer.at()), &own, 4));
    NCCL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, comm, self.stream));
    OK(cuStreamSynchronize(self.stream));
    int total = 0;
    OK(cuMemcpyDtoH_v2(&total, reinterpret_cast<CUdeviceptr>(buffer.at()), 4));
    return total;
  };
  if (role == "all") {
    check::checkAll(self, isSlow() ? 3000 : ranks > 2 ? 9001 : 100001);
  } else if (role == "big") {
    // Many times the size of the staging area.
    const size_t count = isSlow() ? 100000 : 5000001;
    Buffer large(count * 4);
    OK(cuMemsetD32_v2(reinterpret_cast<CUdeviceptr>(large.at()), static_cast<unsigned>(rank + 1), count));
    NCCL(ncclAllReduce(large.at(), large.at(), count, ncclInt32, ncclSum, self.comm, self.stream));
    check::finish(self);
    const auto data = large.get(count * 4);
    for (size_t index = 0; index < count; ++index) {
      int value = 0;
      memcpy(&value, &data[index * 4], 4);
      if (value != ranks * (ranks + 1) / 2) throw check::Failure("wrong sum at " + std::to_string(index));
    }
    check::checkPointToPoint(self, count / 10);
  } else if (role == "killed" || role == "killed in transfer" || role == "aborted") {
    if (rank == 1) {
      usleep(50000);
      if (role == "aborted") {
        NCCL(ncclCommAbort(self.comm));
        self.comm = nullptr;
        sleep(1);
        return;
      }
      if (role == "killed in transfer") {
        // Half of a message is in the ring when this process dies.
        NCCL(ncclSend(buffer.at(), 4 << 20, ncclUint8, 0, self.comm, self.stream));
        usleep(100000);
      }
      kill(getpid(), SIGKILL);
    }
    const auto start = std::chrono::steady_clock::now();
    if (role == "killed in transfer") {
      usleep(300000);
      // The death may already be known.
      const ncclResult_t asked = ncclRecv(buffer.at(), 4 << 20, ncclUint8, 1, self.comm, self.stream);
      CHECK(asked == ncclSuccess || asked == ncclRemoteError);
    } else {
      NCCL(ncclAllReduce(buffer.at(), buffer.at(), 1000, ncclFloat32, ncclSum, self.comm, self.stream));
    }
    OK(cuStreamSynchronize(self.stream));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(3));
    ncclResult_t error = ncclSuccess;
    NCCL(ncclCommGetAsyncError(self.comm, &error));
    EQUAL(error, ncclRemoteError);
    CHECK(strstr(ncclGetLastError(self.comm), "rank 1") != nullptr);
    EQUAL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclFloat32, ncclSum, self.comm, self.stream), ncclRemoteError);
    NCCL(ncclCommAbort(self.comm));
    self.comm = nullptr;
  } else if (role == "disagree") {
    NCCL(ncclAllReduce(buffer.at(), buffer.at(), rank == 0 ? 1000 : 999, ncclFloat32, ncclSum, self.comm, self.stream));
    OK(cuStreamSynchronize(self.stream));
    ncclResult_t error = ncclSuccess;
    NCCL(ncclCommGetAsyncError(self.comm, &error));
    EQUAL(error, ncclInvalidUsage);
  } else if (role == "split") {
    // Odd and even ranks, in reverse order. Then the halves are split again.
    ncclComm_t half = nullptr;
    NCCL(ncclCommSplit(self.comm, rank % 2, -rank, &half, nullptr));
    int own = -1, count = 0;
    NCCL(ncclCommUserRank(half, &own));
    NCCL(ncclCommCount(half, &count));
    EQUAL(count, ranks / 2);
    EQUAL(own, (ranks - 1 - rank) / 2);
    EQUAL(sum(half, rank), rank % 2 == 0 ? 2 : 4);
    EQUAL(sum(self.comm, 1), ranks);
    ncclComm_t alone = nullptr;
    NCCL(ncclCommSplit(half, own == 0 ? 7 : NCCL_SPLIT_NOCOLOR, 0, &alone, nullptr));
    CHECK((alone != nullptr) == (own == 0));
    NCCL(ncclCommDestroy(half));
    if (alone != nullptr) {
      EQUAL(sum(alone, 5), 5);
      NCCL(ncclCommDestroy(alone));
    }
  } else if (role == "killed in split" || role == "killed, then shrunk" || role == "killed, then noticed") {
    if (rank == 1) {
      if (role == "killed in split")
        std::thread([&] {
          ncclComm_t made;
          ncclCommSplit(self.comm, 0, 0, &made, nullptr);
        }).detach();
      usleep(100000);
      kill(getpid(), SIGKILL);
    }
    const auto start = std::chrono::steady_clock::now();
    ncclComm_t made = nullptr;
    if (role == "killed in split") {
      if (rank == 0) usleep(200000);
      const ncclResult_t result = ncclCommSplit(self.comm, 0, 0, &made, nullptr);
      EQUAL(result, ncclRemoteError);
      CHECK(made == nullptr);
    } else if (role == "killed, then noticed") {
      // No operation waits, but polling the communicator reports the death.
      ncclResult_t error = ncclSuccess;
      while (error == ncclSuccess) NCCL(ncclCommGetAsyncError(self.comm, &error));
      EQUAL(error, ncclRemoteError);
    } else {
      // The other survivor may have aborted already.
      const ncclResult_t asked =
          ncclAllReduce(buffer.at(), buffer.at(), 1000, ncclFloat32, ncclSum, self.comm, self.stream);
      CHECK(asked == ncclSuccess || asked == ncclRemoteError);
      int dead = 1;
      NCCL(ncclCommShrink(self.comm, &dead, 1, &made, nullptr, NCCL_SHRINK_ABORT));
      OK(cuStreamSynchronize(self.stream));
      EQUAL(sum(made, 1), ranks - 1);
      EQUAL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclFloat32, ncclSum, self.comm, self.stream), ncclInvalidUsage);
      NCCL(ncclCommDestroy(made));
    }
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(4));
    NCCL(ncclCommAbort(self.comm));
    self.comm = nullptr;
  } else if (role == "killed in finalize") {
    EQUAL(sum(self.comm, 1), ranks);
    if (rank == 1) {
      std::thread([&] { ncclCommFinalize(self.comm); }).detach();
      kill(getpid(), SIGKILL);
    }
    usleep(50000);
    const ncclResult_t result = ncclCommFinalize(self.comm);
    CHECK(result == ncclSuccess || result == ncclRemoteError);
  } else if (role == "late") {
    // A rank does not join a collective in time.
    if (rank == 0) {
      NCCL(ncclAllReduce(buffer.at(), buffer.at(), 1000, ncclFloat32, ncclSum, self.comm, self.stream));
      OK(cuStreamSynchronize(self.stream));
      ncclResult_t error = ncclSuccess;
      NCCL(ncclCommGetAsyncError(self.comm, &error));
      EQUAL(error, ncclSystemError);
    } else {
      sleep(2);
    }
  }
  if (self.comm != nullptr) NCCL(ncclCommDestroy(self.comm));
}

int runChild(int count, char** arguments) {
  if (count == 2 && strcmp(arguments[0], "id") == 0) {
    ncclUniqueId made;
    return ncclGetUniqueId(&made) == ncclSuccess &&
                   write(atoi(arguments[1]), &made, sizeof made) == static_cast<ssize_t>(sizeof made)
               ? 0
               : 1;
  }
  if (count < 5) return 2;
  ncclUniqueId id;
  for (int byte = 0; byte < NCCL_UNIQUE_ID_BYTES; ++byte) {
    unsigned value = 0;
    sscanf(arguments[1] + 2 * byte, "%2x", &value);
    id.internal[byte] = static_cast<char>(value);
  }
  const int ranks = atoi(arguments[2]), rank = atoi(arguments[3]), here = atoi(arguments[4]);
  int failures = 0;
  std::vector<std::thread> threads;
  for (int own = rank; own < rank + here; ++own) {
    threads.emplace_back([&, own] {
      try {
        runRank(arguments[0], id, ranks, own);
      } catch (const std::exception& error) {
        fprintf(stderr, "%s, rank %d: %s\n", arguments[0], own, error.what());
        __atomic_fetch_add(&failures, 1, __ATOMIC_SEQ_CST);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return failures == 0 ? 0 : 1;
}

// Starts a process per rank. All must succeed.
void together(const std::string& role, int ranks, int ranksHere = 1) {
  const ncclUniqueId id = makeId();
  std::vector<Child> children;
  for (int rank = 0; rank < ranks; rank += ranksHere) children.push_back(start(role, id, ranks, rank, ranksHere));
  for (auto& child : children) EQUAL(wait(child), 0);
  EQUAL(segmentsLeft(), 0);
}

}  // namespace

TEST(two_processes) { together("all", 2); }
TEST(four_processes) { together("all", 4); }
TEST(two_processes_of_two_ranks) {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer only sees this process. Two threads that synchronize through a word that another process changes
  // look unordered.
  throw check::Skip("ThreadSanitizer does not see what orders threads through another process");
#endif
  together("all", 4, 2);
}
TEST(large_data) { together("big", 2); }
TEST(disagreeing_processes_are_told) { together("disagree", 2); }
TEST(processes_on_the_same_device_are_refused) { together("same device", 2); }

TEST(no_name_is_left_behind) {
  for (const char* role : {"refused", "exits"}) {
    const Child alone = start(role, makeId(), 2, 0);
    EQUAL(wait(alone), 0);
    EQUAL(segmentsLeft(), 0);
  }
}

TEST(a_killed_peer_is_noticed) {
  for (const char* role : {"killed", "killed in transfer"}) {
    const ncclUniqueId id = makeId();
    const Child survivor = start(role, id, 2, 0), killed = start(role, id, 2, 1);
    // The killed process stays a zombie here, so its process id alone would look alive.
    EQUAL(wait(survivor), 0);
    EQUAL(wait(killed), 1000 + SIGKILL);
    EQUAL(segmentsLeft(), 0);
  }
}

TEST(a_killed_peer_is_noticed_at_every_stage) {
  for (const char* role :
       {"killed in init", "killed in split", "killed, then shrunk", "killed, then noticed", "killed in finalize"}) {
    const bool isInit = strcmp(role, "killed in init") == 0;
    const int ranks = 3;
    const ncclUniqueId id = makeId();
    std::vector<Child> children;
    for (int rank = 0; rank < (isInit ? 2 : ranks); ++rank) children.push_back(start(role, id, ranks, rank));
    for (size_t rank = 0; rank < children.size(); ++rank) EQUAL(wait(children[rank]), rank == 1 ? 1000 + SIGKILL : 0);
    EQUAL(segmentsLeft(), 0);
  }
}

TEST(processes_split) { together("split", 4); }

TEST(the_process_of_the_id_is_gone) {
  // The id of a process that has ended fails at once.
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t maker = fork();
  if (maker == 0) {
    execl("/proc/self/exe", "nccl_process_test", "--child", "id", std::to_string(ends[1]).c_str(), nullptr);
    _exit(127);
  }
  ncclUniqueId id;
  CHECK(read(ends[0], &id, sizeof id) == static_cast<ssize_t>(sizeof id));
  EQUAL(wait({maker}), 0);
  Primary primary;
  ncclComm_t comm = nullptr;
  EQUAL(ncclCommInitRank(&comm, 2, id, 0), ncclRemoteError);
  CHECK(comm == nullptr);
  CHECK(strstr(ncclGetLastError(nullptr), "has ended") != nullptr);
}

TEST(an_aborting_peer_is_noticed) {
  const ncclUniqueId id = makeId();
  const Child survivor = start("aborted", id, 2, 0), aborting = start("aborted", id, 2, 1);
  EQUAL(wait(survivor), 0);
  EQUAL(wait(aborting), 0);
}

TEST(a_rank_that_never_comes_is_not_waited_for_for_ever) {
  setenv("SHOAL_SIM_TIMEOUT_SECONDS", "0.5", 1);
  const Child alone = start("timeout", makeId(), 2, 0);
  EQUAL(wait(alone), 0);
  EQUAL(segmentsLeft(), 0);
  const ncclUniqueId id = makeId();
  const Child one = start("rank twice", id, 2, 0), two = start("rank twice", id, 2, 1);
  EQUAL(wait(one), 0);
  EQUAL(wait(two), 0);
  EQUAL(segmentsLeft(), 0);
  const ncclUniqueId late = makeId();
  const Child waiting = start("late", late, 2, 0), idle = start("late", late, 2, 1);
  EQUAL(wait(waiting), 0);
  EQUAL(wait(idle), 0);
  unsetenv("SHOAL_SIM_TIMEOUT_SECONDS");
}
