#include "pointtopoint.h"

#include <algorithm>
#include <cstring>

namespace shoal::nccl {

namespace {
constexpr size_t kHeader = sizeof(uint64_t);  // each message in a ring starts with its length
}

PointToPoint::PointToPoint(Endpoint& endpoint, const std::vector<Task>& tasks) : endpoint_(endpoint) {
  for (const Task& task : tasks) {
    if (!task.isPointToPoint() || task.count == 0) continue;
    Transfer transfer;
    transfer.task = task;
    transfer.bytes = task.count * bytesOf(task.type);
    (task.kind == TaskKind::send ? sends_ : receives_).push_back(transfer);
  }
}

void PointToPoint::ring(int rank) {
  auto& doorbell = endpoint_.segment->slot(rank).doorbell;
  doorbell.fetch_add(1);
  futexWakeAll(doorbell);
}

// Messages between the same two ranks keep their order.
bool PointToPoint::isBlocked(const std::vector<Transfer>& transfers, size_t index) const {
  for (size_t before = 0; before < index; ++before) {
    if (!transfers[before].isDone && transfers[before].task.root == transfers[index].task.root) return true;
  }
  return false;
}

bool PointToPoint::advance() {
  bool moved = false;
  for (auto* transfers : {&sends_, &receives_}) {
    for (size_t index = 0; index < transfers->size() && failure_ == ncclSuccess; ++index) {
      Transfer& transfer = (*transfers)[index];
      if (transfer.isDone || isBlocked(*transfers, index)) continue;
      if (endpoint_.isDirect ? advanceDirect(transfer) : advanceStaged(transfer)) {
        moved = true;
        ring(transfer.task.root);
      }
    }
  }
  return moved;
}

// The sender passes an address. The receiver copies from this address and then confirms.
bool PointToPoint::advanceDirect(Transfer& transfer) {
  const int peer = transfer.task.root, self = endpoint_.rank;
  if (transfer.task.kind == TaskKind::send) {
    Channel& channel = endpoint_.segment->channel(self, peer);
    if (!transfer.isOffered) {
      if (channel.written.load() != channel.read.load()) return false;
      channel.address = transfer.task.send;
      channel.bytes = transfer.bytes;
      channel.written.fetch_add(1);
      return transfer.isOffered = true;
    }
    return transfer.isDone = channel.written.load() == channel.read.load();
  }
  Channel& channel = endpoint_.segment->channel(peer, self);
  if (channel.written.load() == channel.read.load()) return false;
  if (!endpoint_.enterWork()) return false;
  if (channel.bytes == transfer.bytes) {
    memmove(transfer.task.recv, channel.address, transfer.bytes);
    channel.read.fetch_add(1);
    transfer.isDone = true;
  } else {
    failure_ = endpoint_.fail(
        ncclInvalidUsage, "rank " + std::to_string(peer) + " sends " + std::to_string(channel.bytes) + " bytes, rank " +
                              std::to_string(self) + " receives " + std::to_string(transfer.bytes));
  }
  endpoint_.leaveWork();
  return true;
}

bool PointToPoint::advanceStaged(Transfer& transfer) {
  const bool isSend = transfer.task.kind == TaskKind::send;
  const int from = isSend ? endpoint_.rank : transfer.task.root, to = isSend ? transfer.task.root : endpoint_.rank;
  Channel& channel = endpoint_.segment->channel(from, to);
  char* ringStart = endpoint_.segment->ring(from, to);
  const size_t capacity = endpoint_.segment->ringBytes();
  const uint64_t written = channel.written.load(), read = channel.read.load();
  // Copies bytes between the ring at `position` and a flat buffer.
  const auto pass = [&](uint64_t position, char* flat, size_t bytes) {
    while (bytes != 0) {
      const size_t offset = position % capacity, now = std::min(bytes, capacity - offset);
      if (isSend) memcpy(ringStart + offset, flat, now);
      else memcpy(flat, ringStart + offset, now);
      position += now;
      flat += now;
      bytes -= now;
    }
  };
  size_t room = isSend ? capacity - (written - read) : written - read;
  uint64_t position = isSend ? written : read;
  const uint64_t begin = position;
  if (transfer.moved < kHeader) {
    if (room < kHeader) return false;
    uint64_t length = transfer.bytes;
    pass(position, reinterpret_cast<char*>(&length), kHeader);
    if (length != transfer.bytes) {
      failure_ = endpoint_.fail(ncclInvalidUsage, "rank " + std::to_string(from) + " sends " + std::to_string(length) +
                                                      " bytes, rank " + std::to_string(to) + " receives " +
                                                      std::to_string(transfer.bytes));
      return true;
    }
    position += kHeader;
    room -= kHeader;
    transfer.moved = kHeader;
  }
  const size_t done = transfer.moved - kHeader, now = std::min(room, transfer.bytes - done);
  char* flat =
      isSend ? const_cast<char*>(static_cast<const char*>(transfer.task.send)) : static_cast<char*>(transfer.task.recv);
  pass(position, flat + done, now);
  position += now;
  transfer.moved += now;
  transfer.isDone = transfer.moved == kHeader + transfer.bytes;
  if (position == begin) return false;
  (isSend ? channel.written : channel.read).store(position);
  return true;
}

bool PointToPoint::isFinished() const {
  const auto done = [](const Transfer& transfer) { return transfer.isDone; };
  return std::all_of(sends_.begin(), sends_.end(), done) && std::all_of(receives_.begin(), receives_.end(), done);
}

uint64_t PointToPoint::pendingPeers() const {
  uint64_t peers = 0;
  for (auto* transfers : {&sends_, &receives_}) {
    for (const Transfer& transfer : *transfers) {
      if (!transfer.isDone) peers |= uint64_t{1} << transfer.task.root;
    }
  }
  return peers;
}

void PointToPoint::start() {
  if (!sends_.empty() || !receives_.empty()) advance();
}

ncclResult_t PointToPoint::finish() {
  ncclResult_t result = ncclSuccess;
  while (result == ncclSuccess && !isFinished()) {
    result =
        endpoint_.waitUntil(endpoint_.segment->slot(endpoint_.rank).doorbell, {pendingPeers(), "a send or receive"},
                            [&] { return advance() || failure_ != ncclSuccess; });
    if (failure_ != ncclSuccess) result = failure_;
  }
  if (result != ncclSuccess) {
    if (endpoint_.isStopped()) endpoint_.fail(ncclRemoteError, endpoint_.whyStopped());
    if (endpoint_.isDirect) endpoint_.waitForWorkers();
  }
  return result;
}

}  // namespace shoal::nccl
