// Windows: memory of each rank that the other ranks of a communicator can access.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "communicator.h"
#include "multicast.h"

namespace shoal::nccl {

class Window {
 public:
  // Makes a window. All ranks must call it, and it exchanges their memory. A rank that has failed `before` reports that
  // to the other ranks.
  static ncclResult_t make(Communicator& communicator, const char* function, void* buffer, size_t bytes, int flags,
                           std::shared_ptr<Window>& window, ncclResult_t before = ncclSuccess);
  Window(const Communicator& communicator, void* buffer, size_t bytes, int flags);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // Looks up a handle. If it is invalid, records the problem.
  static ncclResult_t find(ncclWindow_t handle, const char* function, std::shared_ptr<Window>& window);
  ncclWindow_t handle() const { return reinterpret_cast<ncclWindow_t>(handle_); }
  // Removes the handle, so that later calls do not find the window.
  void withdraw();

  bool isOf(const Communicator& communicator) const { return owner_ == &communicator; }
  bool isSymmetric() const { return (flags & NCCL_WIN_COLL_SYMMETRIC) != 0; }
  bool covers(const void* address, size_t bytes) const;
  // The address of a rank's memory in this process, and its size.
  char* at(int rank) const { return peers_[static_cast<size_t>(rank)].address; }
  // The multicast address, at which a write reaches the window of every rank; null if there is none.
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
    CUdeviceptr opened = 0;    // opened through legacy IPC
    CUdeviceptr reserved = 0;  // addresses reserved for mapped memory
    size_t reservedBytes = 0;
  };
  struct Shared;
  void offer(Shared& shared, int& descriptor) const;
  ncclResult_t open(const char* function, int rank, const Shared& shared);

  const Communicator* const owner_;  // only for comparison
  const CUcontext context_;
  const int device_;
  uint64_t handle_ = 0;
  std::vector<Peer> peers_;
  std::unique_ptr<Multicast> multicast_;
};

}  // namespace shoal::nccl
