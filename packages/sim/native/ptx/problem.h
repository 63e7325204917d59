// What stops a load or a kernel. Both are thrown, and caught where the load or the launch began.
#pragma once

#include <string>

#include "shoal/cuda.h"

namespace shoal::ptx {

// PTX that cannot be loaded: what is said goes into the JIT error log.
struct Refusal {
  CUresult status;
  unsigned line;
  std::string message;
};

[[noreturn]] inline void refuseSyntax(unsigned line, std::string message) { throw Refusal{CUDA_ERROR_INVALID_PTX, line, std::move(message)}; }
[[noreturn]] inline void refuseFeature(unsigned line, std::string message) {
  throw Refusal{CUDA_ERROR_NO_BINARY_FOR_GPU, line, std::move(message) + " is not supported by the Shoal software device"};
}

// A thread that did what hardware stops a kernel for.
struct Fault {
  CUresult status;
  std::string message;
  bool isLocated = false;  // the message says where it was
};

}  // namespace shoal::ptx
