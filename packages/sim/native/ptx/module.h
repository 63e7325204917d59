// A module: its program, its kernels and its variables, with the addresses that these have in one context.
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
  uint32_t sharedBytes = 0;     // without the dynamic part
  uint32_t dynamicBase = 0;     // where that begins
  uint32_t localBytes = 0;      // of a thread, with the functions it calls
  uint32_t toldLocalBytes = 0;  // in units of 8, as compilers have them
  bool isRecursive = false;
  bool launchesGraphs = false;  // it, or a function that it calls, has a call of cudaGraphLaunch
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

// Gives memory of the device, or managed memory, for the variables of a module: zeroes, at 0 if there is none.
using AllocateMemory = std::function<uint64_t(uint64_t bytes, bool isManaged)>;

// Throws a Refusal. With `hasManaged` the managed memory is what another load of the same text filled.
std::shared_ptr<Module> loadModule(std::string_view text, const AllocateMemory& allocate, bool hasManaged);

}  // namespace shoal::ptx
