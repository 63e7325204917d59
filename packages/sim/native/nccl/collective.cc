#include "collective.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace shoal::nccl {

namespace {

const char* at(const void* buffer, size_t bytes) { return static_cast<const char*>(buffer) + bytes; }
char* at(void* buffer, size_t bytes) { return static_cast<char*>(buffer) + bytes; }

void copy(void* to, const void* from, size_t bytes) {
  if (to != from) memmove(to, from, bytes);
}

void describe(Endpoint& endpoint, const Task& task) {
  Description& own = endpoint.segment->slot(endpoint.rank).descriptions[endpoint.step & 1];
  own.kind = static_cast<uint32_t>(task.kind);
  own.type = task.type;
  own.reducer = static_cast<uint32_t>(task.reducer);
  own.root = task.root;
  own.count = task.count;
  own.scalar = task.scalar;
  own.send = task.send;
  own.recv = task.recv;
}

const Description& descriptionOf(Endpoint& endpoint, int rank) {
  return endpoint.segment->slot(rank).descriptions[endpoint.step & 1];
}

// Every rank compares its call with rank 0's, so that either all ranks continue or all fail.
ncclResult_t checkAgreement(Endpoint& endpoint) {
  const Description& first = descriptionOf(endpoint, 0);
  for (int rank = 1; rank < endpoint.ranks; ++rank) {
    const Description& other = descriptionOf(endpoint, rank);
    const char* what = other.kind != first.kind         ? "operation"
                       : other.count != first.count     ? "count"
                       : other.type != first.type       ? "data type"
                       : other.reducer != first.reducer ? "reduction"
                       : other.root != first.root       ? "root"
                                                        : nullptr;
    if (what == nullptr) continue;
    return endpoint.fail(ncclInvalidUsage, std::string("ranks 0 and ") + std::to_string(rank) + " disagree on the " +
                                               what + " of a collective (" + nameOf(static_cast<TaskKind>(first.kind)) +
                                               " of " + std::to_string(first.count) + ", " +
                                               nameOf(static_cast<TaskKind>(other.kind)) + " of " +
                                               std::to_string(other.count) + ")");
  }
  return ncclSuccess;
}

struct Reducible {
  const void* inputs[kMaxRanks];
  uint64_t scalars[kMaxRanks];
};

void reduceInto(Endpoint& endpoint, const Task& task, const Reducible& from, void* const* outputs, int outputCount,
                size_t count) {
  reduce({task.type, task.reducer, endpoint.ranks, from.inputs, from.scalars, outputs, outputCount, count});
}

// ---- within a process: ranks read each other's buffers directly

// The work of one rank between the two barriers. No rank may write where another rank still reads; each case says why.
void workDirectly(Endpoint& endpoint, const Task& task) {
  const int ranks = endpoint.ranks, rank = endpoint.rank;
  const size_t element = bytesOf(task.type), bytes = task.count * element;
  Reducible from;
  const auto send = [&](int of) { return descriptionOf(endpoint, of).send; };
  const auto gather = [&](size_t offset) {
    for (int other = 0; other < ranks; ++other) {
      from.inputs[other] = at(send(other), offset);
      from.scalars[other] = descriptionOf(endpoint, other).scalar;
    }
  };
  switch (task.kind) {
    case TaskKind::allReduce: {
      // Each rank reduces one slice for all ranks. In place, only this rank touches that slice of any buffer.
      const size_t lines = (task.count + 63) / 64,
                   share = (lines + static_cast<size_t>(ranks) - 1) / static_cast<size_t>(ranks) * 64;
      const size_t start = std::min(share * static_cast<size_t>(rank), task.count),
                   length = std::min(share, task.count - start);
      if (length == 0) return;
      gather(start * element);
      void* outputs[kMaxRanks];
      for (int other = 0; other < ranks; ++other)
        outputs[other] = at(descriptionOf(endpoint, other).recv, start * element);
      return reduceInto(endpoint, task, from, outputs, ranks, length);
    }
    case TaskKind::reduce: {
      if (rank != task.root) return;
      gather(0);
      void* output = task.recv;
      return reduceInto(endpoint, task, from, &output, 1, task.count);
    }
    case TaskKind::reduceScatter: {
      // In place, this rank only writes the part of its own buffer that no other rank reads.
      gather(bytes * static_cast<size_t>(rank));
      void* output = task.recv;
      return reduceInto(endpoint, task, from, &output, 1, task.count);
    }
    case TaskKind::broadcast: return copy(task.recv, send(task.root), bytes);
    case TaskKind::allGather:
      // In place, a rank's own part is both its source and its destination, and no rank writes it.
      for (int other = 0; other < ranks; ++other)
        copy(at(task.recv, bytes * static_cast<size_t>(other)), send(other), bytes);
      return;
    case TaskKind::gather:
      if (rank != task.root) return;
      for (int other = 0; other < ranks; ++other)
        copy(at(task.recv, bytes * static_cast<size_t>(other)), send(other), bytes);
      return;
    case TaskKind::scatter: return copy(task.recv, at(send(task.root), bytes * static_cast<size_t>(rank)), bytes);
    case TaskKind::allToAll:
      for (int other = 0; other < ranks; ++other) {
        copy(at(task.recv, bytes * static_cast<size_t>(other)), at(send(other), bytes * static_cast<size_t>(rank)),
             bytes);
      }
      return;
    default: return;
  }
}

ncclResult_t runDirectly(Endpoint& endpoint, const Task& task) {
  Task own = task;
  std::vector<char> copied;
  if (task.kind == TaskKind::allToAll && task.send == task.recv) {
    // In place, every part would be overwritten before all ranks have read it.
    const size_t bytes = sendElements(task, endpoint.ranks, endpoint.rank) * bytesOf(task.type);
    copied.assign(static_cast<const char*>(task.send), static_cast<const char*>(task.send) + bytes);
    own.send = copied.data();
  }
  describe(endpoint, own);
  ncclResult_t result = ncclInternalError;
  if (endpoint.enterWork()) {
    result = endpoint.barrier();
    if (result == ncclSuccess) result = checkAgreement(endpoint);
    if (result == ncclSuccess) result = endpoint.failure();
    if (result == ncclSuccess) workDirectly(endpoint, own);
    endpoint.leaveWork();
    if (result == ncclSuccess) result = endpoint.barrier();
  } else if (const ncclResult_t failed = endpoint.failure()) {
    result = failed;
  }
  ++endpoint.step;
  if (result != ncclSuccess) {
    if (endpoint.isStopped()) endpoint.fail(ncclRemoteError, endpoint.whyStopped());
    endpoint.waitForWorkers();
  }
  return result;
}

// ---- between processes: data passes through shared memory in chunks

// The division of a collective: for each chunk, each rank stages `pieces` pieces of up to `length` elements.
int piecesOf(const Task& task, int ranks) {
  const bool isCut =
      task.kind == TaskKind::reduceScatter || task.kind == TaskKind::allToAll || task.kind == TaskKind::scatter;
  return isCut ? ranks : 1;
}

bool stages(const Task& task, int rank) {
  return (task.kind != TaskKind::broadcast && task.kind != TaskKind::scatter) || rank == task.root;
}

void readStaged(Endpoint& endpoint, const Task& task, size_t start, size_t length, size_t pieceBytes) {
  const int ranks = endpoint.ranks, rank = endpoint.rank, parity = static_cast<int>(endpoint.step & 1);
  const size_t element = bytesOf(task.type), bytes = length * element;
  const auto staged = [&](int of, int piece) {
    return endpoint.segment->staging(of, parity) + pieceBytes * static_cast<size_t>(piece);
  };
  // The address of this chunk of another rank's part in the receive buffer.
  const auto place = [&](int part) {
    return at(task.recv, (task.count * static_cast<size_t>(part) + start) * element);
  };
  switch (task.kind) {
    case TaskKind::reduce:
      if (rank != task.root) return;
      [[fallthrough]];
    case TaskKind::allReduce:
    case TaskKind::reduceScatter: {
      Reducible from;
      for (int other = 0; other < ranks; ++other) {
        from.inputs[other] = staged(other, task.kind == TaskKind::reduceScatter ? rank : 0);
        from.scalars[other] = descriptionOf(endpoint, other).scalar;
      }
      void* output = place(0);
      return reduceInto(endpoint, task, from, &output, 1, length);
    }
    case TaskKind::broadcast: return copy(place(0), staged(task.root, 0), bytes);
    case TaskKind::scatter: return copy(place(0), staged(task.root, rank), bytes);
    case TaskKind::gather:
      if (rank != task.root) return;
      [[fallthrough]];
    case TaskKind::allGather:
      for (int other = 0; other < ranks; ++other) copy(place(other), staged(other, 0), bytes);
      return;
    case TaskKind::allToAll:
      for (int other = 0; other < ranks; ++other) copy(place(other), staged(other, rank), bytes);
      return;
    default: return;
  }
}

// One barrier per chunk is enough. A buffer is written again two steps later. By that time, every rank has passed the
// barrier of the step between, and has therefore read the buffer.
ncclResult_t runStaged(Endpoint& endpoint, const Task& task) {
  const int pieces = piecesOf(task, endpoint.ranks);
  const size_t element = bytesOf(task.type);
  const size_t pieceBytes = endpoint.segment->stagingBytes() / static_cast<size_t>(pieces) / 64 * 64;
  const size_t most = pieceBytes / element;
  // In place, part of the send buffer may be overwritten before it was staged.
  std::vector<char> copied;
  const void* send = task.send;
  if (stages(task, endpoint.rank) &&
      (task.kind == TaskKind::allToAll || task.kind == TaskKind::reduceScatter || task.kind == TaskKind::scatter ||
       task.kind == TaskKind::allGather || task.kind == TaskKind::gather)) {
    const char* sendStart = static_cast<const char*>(task.send);
    const char* recvStart = static_cast<const char*>(task.recv);
    const size_t sendBytes = sendElements(task, endpoint.ranks, endpoint.rank) * element;
    const size_t recvBytes = recvElements(task, endpoint.ranks, endpoint.rank) * element;
    if (recvBytes != 0 && sendStart < recvStart + recvBytes && recvStart < sendStart + sendBytes) {
      copied.assign(sendStart, sendStart + sendBytes);
      send = copied.data();
    }
  }
  for (size_t start = 0; start < task.count; start += most) {
    const size_t length = std::min(most, task.count - start);
    if (stages(task, endpoint.rank)) {
      char* staging = endpoint.segment->staging(endpoint.rank, static_cast<int>(endpoint.step & 1));
      for (int piece = 0; piece < pieces; ++piece) {
        memcpy(staging + pieceBytes * static_cast<size_t>(piece),
               at(send, (task.count * static_cast<size_t>(piece) + start) * element), length * element);
      }
    }
    describe(endpoint, task);
    ncclResult_t result = endpoint.barrier();
    if (result == ncclSuccess) result = checkAgreement(endpoint);
    if (result != ncclSuccess) {
      if (endpoint.isStopped()) endpoint.fail(ncclRemoteError, endpoint.whyStopped());
      return result;
    }
    readStaged(endpoint, task, start, length, pieceBytes);
    ++endpoint.step;
  }
  return ncclSuccess;
}

}  // namespace

ncclResult_t runCollective(Endpoint& endpoint, const Task& task) {
  if (task.count == 0) return ncclSuccess;
  return endpoint.isDirect ? runDirectly(endpoint, task) : runStaged(endpoint, task);
}

}  // namespace shoal::nccl
