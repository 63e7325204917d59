// Windows: memory that the ranks of a communicator know of each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "communicator.h"
#include "multicast.h"

namespace shoal::nccl {

class Window {
 public:
  // Makes it known to all ranks, and theirs here; all of them have to come. A rank that has failed `before` says so to
  // the others.
  static ncclResult_t make(Communicator& communicator, const char* function, void* buffer, size_t bytes, int flags,
                           std::shared_ptr<Window>& window, ncclResult_t before = ncclSuccess);
  Window(const Communicator& communicator, void* buffer, size_t bytes, int flags);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // `problem` has been told when it is none.
  static ncclResult_t find(ncclWindow_t handle, const char* function, std::shared_ptr<Window>& window);
  ncclWindow_t handle() const { return reinterpret_cast<ncclWindow_t>(handle_); }
  // Nobody can find it any more.
  void withdraw();

  bool isOf(const Communicator& communicator) const { return owner_ == &communicator; }
  bool isSymmetric() const { return (flags & NCCL_WIN_COLL_SYMMETRIC) != 0; }
  bool covers(const void* address, size_t bytes) const;
  // Where this process sees the memory of a rank, and how much of it there is.
  char* at(int rank) const { return peers_[static_cast<size_t>(rank)].address; }
  // Where a write reaches the window of every rank; null when there is no such place.
  char* multicast() const { return multicast_ == nullptr ? nullptr : multicast_->at(); }
  size_t bytesOf(int rank) const { return peers_[static_cast<size_t>(rank)].bytes; }

  char* const buffer;
  const size_t bytes;
  const int flags;
  const int ranks, rank;

 private:
  struct Peer {
    char* address = nullptr;
    size_t bytes = 0;
    CUdeviceptr opened = 0;    // by legacy IPC
    CUdeviceptr reserved = 0;  // for mapped memory
    size_t reservedBytes = 0;
  };
  struct Shared;
  void offer(Shared& shared, int& descriptor) const;
  ncclResult_t open(const char* function, int rank, const Shared& shared);

  const Communicator* const owner_;  // only compared
  const CUcontext context_;
  const int device_;
  uint64_t handle_ = 0;
  std::vector<Peer> peers_;
  std::unique_ptr<Multicast> multicast_;
};

}  // namespace shoal::nccl
