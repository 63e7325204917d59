// A multicast address: one write reaches the memory of all ranks.
#pragma once

#include <memory>

#include "communicator.h"

namespace shoal::nccl {

class Multicast {
 public:
  // True if the communicator's ranks can have multicast addresses; false with NCCL_NVLS_ENABLE=0.
  static bool isSupported(const Communicator& communicator);
  // Makes an address for the mapped memory around `buffer`, which must be at the same offset in it on every rank. All
  // ranks must call it. Either all ranks get an address or none does, for example if their memory is of another kind.
  // It only fails if ranks are lost.
  static ncclResult_t make(Communicator& communicator, const char* function, const void* buffer,
                           std::unique_ptr<Multicast>& made);
  ~Multicast();
  Multicast(const Multicast&) = delete;
  Multicast& operator=(const Multicast&) = delete;

  // The address that corresponds to the buffer.
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
