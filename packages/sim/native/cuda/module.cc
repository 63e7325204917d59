// Modules and kernels. The device runs no kernels yet: every image is refused with the error the real driver has for it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "core/context.h"
#include "core/entry.h"

using namespace shoal;

namespace {

constexpr char kRunsNoKernels[] = "the Shoal software device runs no kernels yet";
constexpr uint32_t kElfMagic = 0x464c457f;
constexpr uint32_t kFatbinWrapperMagic = 0x466243b1;
constexpr uint32_t kFatbinMagic = 0xba55ed50;

struct JitOptions {
  unsigned count;
  const CUjit_option* names;
  void** values;
};

// The log's buffer and its size are two options; the size is in and out.
void writeErrorLog(const JitOptions& options, const char* message) {
  char* buffer = nullptr;
  size_t size = 0;
  void** sizeSlot = nullptr;
  for (unsigned index = 0; index < options.count; ++index) {
    if (options.names[index] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(options.values[index]);
    if (options.names[index] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
      size = reinterpret_cast<size_t>(options.values[index]) & 0xffffffffu;
      sizeSlot = &options.values[index];
    }
  }
  if (buffer == nullptr || size == 0) return;
  const int length = snprintf(buffer, size, "error   : %s", message);
  if (sizeSlot != nullptr) *sizeSlot = reinterpret_cast<void*>(std::min<size_t>(static_cast<size_t>(length), size - 1));
}

// Skips blanks and comments; a NUL ends the text.
const char* skipBlanks(const char* at) {
  for (;;) {
    if (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') {
      ++at;
    } else if (at[0] == '/' && at[1] == '/') {
      while (*at != '\0' && *at != '\n') ++at;
    } else if (at[0] == '/' && at[1] == '*') {
      const char* end = strstr(at + 2, "*/");
      if (end == nullptr) return at;
      at = end + 2;
    } else {
      return at;
    }
  }
}

enum class Text { other, badPtx, ptx };

// PTX begins with its version, its target and perhaps its address size; then every statement begins with a directive.
Text classify(const char* image) {
  const char* at = skipBlanks(image);
  if (strncmp(at, ".version", 8) != 0) return Text::other;
  for (const char* directive : {".version", ".target", ".address_size"}) {
    const size_t length = strlen(directive);
    if (strncmp(at, directive, length) != 0) continue;
    while (*at != '\0' && *at != '\n') ++at;
    at = skipBlanks(at);
  }
  return *at == '\0' || *at == '.' ? Text::ptx : Text::badPtx;
}

// The machine that an ELF image says it is for; 0 when it is too broken to tell.
unsigned machineOf(const char* elf) {
  if (elf[4] != 2 || elf[5] != 1 || elf[6] != 1) return 0;  // 64-bit, little-endian, version 1; else nothing more is read
  uint16_t machine = 0;
  memcpy(&machine, elf + 18, sizeof machine);
  return machine;
}

CUresult refuse(const void* data, const JitOptions& options) {
  constexpr unsigned kCudaMachine = 190;
  if (data == nullptr || (options.count != 0 && (options.names == nullptr || options.values == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  const auto* image = static_cast<const char*>(data);
  // Images carry no length: a text ends in a NUL, and nothing behind one may be read.
  uint32_t magic = 0;
  if (strnlen(image, sizeof magic) == sizeof magic) memcpy(&magic, image, sizeof magic);
  if (magic == kElfMagic) {
    if (machineOf(image) != kCudaMachine) return CUDA_ERROR_INVALID_IMAGE;
    writeErrorLog(options, kRunsNoKernels);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  if (magic == kFatbinMagic || magic == kFatbinWrapperMagic) {
    writeErrorLog(options, kRunsNoKernels);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  switch (classify(image)) {
    case Text::ptx: writeErrorLog(options, kRunsNoKernels); return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    case Text::badPtx: writeErrorLog(options, "not PTX: a statement does not begin with a directive"); return CUDA_ERROR_INVALID_PTX;
    case Text::other: break;
  }
  return CUDA_ERROR_INVALID_IMAGE;
}

CUresult load(void* out, const void* image, const JitOptions& options) {
  return inContext([&](auto&) { return out == nullptr ? CUDA_ERROR_INVALID_VALUE : refuse(image, options); });
}

CUresult loadFile(void* out, const char* name, const JitOptions& options) {
  return inContext([&](auto&) -> CUresult {
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(name, std::ios::binary);
    std::stringstream image;
    if (!file || !(image << file.rdbuf())) return CUDA_ERROR_FILE_NOT_FOUND;
    return refuse(image.str().c_str(), options);
  });
}

// No module, library, kernel or function exists, so no handle of one is valid.
template <class Out>
CUresult withoutHandle(Out* out) {
  return inContext([&](auto&) { return out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE; });
}
CUresult withoutHandle() {
  return inContext([](auto&) { return CUDA_ERROR_INVALID_HANDLE; });
}

}  // namespace

CUresult cuModuleLoad(CUmodule* module, const char* fname) { return loadFile(module, fname, {}); }
CUresult cuModuleLoadData(CUmodule* module, const void* image) { return load(module, image, {}); }
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions, CUjit_option* options, void** optionValues) {
  return load(module, image, {numOptions, options, optionValues});
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) { return load(module, fatCubin, {}); }
CUresult cuModuleUnload(CUmodule) { return withoutHandle(); }
CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule, const char*) { return withoutHandle(hfunc); }
CUresult cuModuleGetGlobal_v2(CUdeviceptr*, size_t*, CUmodule, const char*) { return withoutHandle(); }
CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule) { return withoutHandle(count); }
CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int, CUmodule) { return withoutHandle(functions); }

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return initialised([&] {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = 2;
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions, void** jitOptionsValues,
                           unsigned int numJitOptions, CUlibraryOption*, void**, unsigned int) {
  return load(library, code, {numJitOptions, jitOptions, jitOptionsValues});
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions, void** jitOptionsValues,
                               unsigned int numJitOptions, CUlibraryOption*, void**, unsigned int) {
  return loadFile(library, fileName, {numJitOptions, jitOptions, jitOptionsValues});
}
CUresult cuLibraryUnload(CUlibrary) { return withoutHandle(); }
CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary, const char*) { return withoutHandle(pKernel); }
CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary) { return withoutHandle(count); }

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute, CUfunction) { return withoutHandle(pi); }
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return withoutHandle(); }
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return withoutHandle(); }
CUresult cuFuncGetModule(CUmodule* hmod, CUfunction) { return withoutHandle(hmod); }
CUresult cuFuncGetName(const char** name, CUfunction) { return withoutHandle(name); }
CUresult cuFuncGetParamInfo(CUfunction, size_t, size_t* paramOffset, size_t*) { return withoutHandle(paramOffset); }

SHOAL_TWIN(cuLaunchKernel, _ptsz,
           (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, CUstream, void**,
            void**),
           ((void)perThread, withoutHandle()))
SHOAL_TWIN(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig* config, CUfunction, void**, void**), ((void)perThread, withoutHandle(config)))

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction, int, size_t) { return withoutHandle(numBlocks); }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction, int, size_t, unsigned int) {
  return withoutHandle(numBlocks);
}
CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int*, CUfunction, CUoccupancyB2DSize, size_t, int) {
  return withoutHandle(minGridSize);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int*, CUfunction, CUoccupancyB2DSize, size_t, int, unsigned int) {
  return withoutHandle(minGridSize);
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction, int, int) { return withoutHandle(dynamicSmemSize); }
CUresult cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction, const CUlaunchConfig*) { return withoutHandle(clusterSize); }
CUresult cuOccupancyMaxActiveClusters(int* numClusters, CUfunction, const CUlaunchConfig*) { return withoutHandle(numClusters); }
