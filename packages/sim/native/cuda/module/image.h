// Images of modules: what kind they are, and the PTX in them.
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

// Writes to the buffer that the options name, and its length to them.
void writeErrorLog(const JitOptions& options, const std::string& message);

// The same, and gives the status.
CUresult refuse(const JitOptions& options, CUresult status, const std::string& problem);

// Finds the PTX of an image, or says in `problem` why there is none. An image in memory carries no length: `available`
// is SIZE_MAX then.
CUresult findPtx(const void* image, size_t available, std::string& ptx, std::string& problem);
CUresult readFile(const char* name, std::string& bytes);
CUresult findPtxInFile(const char* name, std::string& ptx, std::string& problem);

}  // namespace shoal
