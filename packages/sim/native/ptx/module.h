// A module: its program, kernels and variables, with their addresses in one context.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "machine.h"

namespace shoal::ptx {

struct Kernel {
  struct Parameter {
    uint32_t offset, bytes;
  };
  std::string name;
  uint32_t function = 0;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t sharedBytes = 0;     // without dynamic shared memory
  uint32_t dynamicBase = 0;     // the start of dynamic shared memory
  uint32_t localBytes = 0;      // per thread, including called functions
  uint32_t toldLocalBytes = 0;  // as reported to programs, in units of 8 like those of compilers
  bool isRecursive = false;
  bool launchesGraphs = false;  // the kernel or a function it calls calls cudaGraphLaunch
  unsigned maxThreads = 1024;
  unsigned requiredThreads[3] = {0, 0, 0};
  unsigned cluster[3] = {0, 0, 0};
  bool mustSetCluster = false;  // .explicitcluster
  unsigned registers = 32;
};

struct Global {
  std::string name;
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool isManaged = false;
};

struct Module {
  Program program;
  std::vector<Kernel> kernels;
  std::vector<Global> globals;
  unsigned ptxVersion = 0;
  unsigned target = 0;
  uint64_t constantBytes = 0;
  bool needsHeap = false;
};

// Allocates zeroed memory for the variables of a module, on the device or managed. Returns 0 if there is no memory.
using AllocateMemory = std::function<uint64_t(uint64_t bytes, bool isManaged)>;

// Throws a Refusal. With `hasManaged`, the managed memory was already filled by an earlier load of the same text.
std::shared_ptr<Module> loadModule(std::string_view text, const AllocateMemory& allocate, bool hasManaged);

}  // namespace shoal::ptx
