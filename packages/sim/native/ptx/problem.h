// Exceptions that end a load or a kernel. The function that started the load or the launch catches them.
#pragma once

#include <string>

#include "shoal/cuda.h"
#include "syntax.h"

namespace shoal::ptx {

// Thrown for PTX that cannot be loaded. The message goes to the JIT error log.
struct Refusal {
  CUresult status;
  unsigned line;
  std::string message;
};

[[noreturn]] inline void refuseSyntax(unsigned line, std::string message) {
  throw Refusal{CUDA_ERROR_INVALID_PTX, line, std::move(message)};
}
[[noreturn]] inline void refuseFeature(unsigned line, std::string message) {
  throw Refusal{CUDA_ERROR_NO_BINARY_FOR_GPU, line,
                std::move(message) + " is not supported by the Shoal software device"};
}

// Runs `body`, which reads PTX. If the PTX is newer than the decoder, an error may be due to an unknown new
// instruction. The message then names both versions, and the status is the driver's status for PTX that is too new.
template <class Body>
auto namingVersion(const Syntax& syntax, Body&& body) {
  try {
    return body();
  } catch (Refusal& refusal) {
    const bool isAboutText = refusal.status == CUDA_ERROR_INVALID_PTX || refusal.status == CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (isAboutText && syntax.version() > Syntax::kNewestKnown) {
      const auto name = [](unsigned version) {
        return std::to_string(version / 10) + "." + std::to_string(version % 10);
      };
      refusal.status = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
      refusal.message += "; this is PTX " + name(syntax.version()) + ", the Shoal software device knows PTX up to " +
                         name(Syntax::kNewestKnown);
    }
    throw;
  }
}

// Thrown when a thread does something that makes hardware stop the kernel.
struct Fault {
  CUresult status;
  std::string message;
  bool isLocated = false;  // the message includes the place
};

}  // namespace shoal::ptx
