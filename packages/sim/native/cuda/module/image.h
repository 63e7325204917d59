// Module images: detects their format and extracts their PTX.
#pragma once

#include <string>

#include "shoal/cuda.h"

namespace shoal {

constexpr uint32_t kFatbinMagic = 0xba55ed50;

struct JitOptions {
  unsigned count;
  const CUjit_option* names;
  void** values;
};

// Writes the message to the buffer in the options, and its length to the options.
void writeErrorLog(const JitOptions& options, const std::string& message);

// Writes the log and returns the status.
CUresult refuse(const JitOptions& options, CUresult status, const std::string& problem);

// Finds the PTX of an image; otherwise `problem` says why not. `available` is SIZE_MAX for an image in memory, because
// such an image has no length.
CUresult findPtx(const void* image, size_t available, std::string& ptx, std::string& problem);
CUresult readFile(const char* name, std::string& bytes);
CUresult findPtxInFile(const char* name, std::string& ptx, std::string& problem);

}  // namespace shoal
