// One address under which a write reaches the memory of all ranks.
#pragma once

#include <memory>

#include "communicator.h"

namespace shoal::nccl {

class Multicast {
 public:
  // Whether a communicator's ranks can have such addresses; NCCL_NVLS_ENABLE=0 says no.
  static bool isSupported(const Communicator& communicator);
  // For the mapped memory around `buffer`, which must lie at the same place in it on every rank. All ranks have to
  // come; all of them get one, or none does, as where their memory is of another kind. It fails only when ranks are
  // lost.
  static ncclResult_t make(Communicator& communicator, const char* function, const void* buffer,
                           std::unique_ptr<Multicast>& made);
  ~Multicast();
  Multicast(const Multicast&) = delete;
  Multicast& operator=(const Multicast&) = delete;

  // That of the buffer.
  char* at() const { return reinterpret_cast<char*>(address_ + offset_); }

 private:
  Multicast(int device, CUcontext context) : device_(device), context_(context) {}
  bool findMemory(const void* buffer);
  bool create(int ranks, int& descriptor);
  bool import(int process, int descriptor);
  bool bind();
  bool map();

  const int device_;
  const CUcontext context_;
  CUdeviceptr memory_ = 0;
  size_t bytes_ = 0, offset_ = 0;
  CUmemGenericAllocationHandle object_ = 0;
  bool isBound_ = false;
  CUdeviceptr address_ = 0;
};

}  // namespace shoal::nccl
