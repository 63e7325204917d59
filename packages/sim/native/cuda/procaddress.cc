// cuGetProcAddress: finds the function for a name and a version.
#include <cstring>

#include "core/device.h"
#include "core/entry.h"

using namespace shoal;

extern "C" __attribute__((visibility("hidden"))) CUresult shoalSimUnsupported(void);

namespace {

// One ABI of a function, and the version that introduced it. `ownVersion` is set if there is a variant for per-thread
// default streams.
struct Variant {
  const char* name;
  int version;
  void* function;
  int ownVersion;
  void* own;
};

#define SHOAL_ONE(name, version, function) {name, version, reinterpret_cast<void*>(&function), 0, nullptr},
#define SHOAL_TWO(name, version, function, ownVersion, own) \
  {name, version, reinterpret_cast<void*>(&function), ownVersion, reinterpret_cast<void*>(&own)},

// A function that the software device lacks. `ownVersion` is 0 if it has no per-thread variant.
#define SHOAL_UNSUPPORTED_AT reinterpret_cast<void*>(&shoalSimUnsupported)
#define SHOAL_NONE(name, version, ownVersion) \
  {name, version, SHOAL_UNSUPPORTED_AT, ownVersion, ownVersion == 0 ? nullptr : SHOAL_UNSUPPORTED_AT},

// Generated from the spec.
const Variant kVariants[] = {
#include "entryPoints.gen.h"
};

CUresult find(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
              CUdriverProcAddressQueryResult& status) {
  constexpr cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || pfn == nullptr || (flags & ~known) != 0 || cudaVersion > kDriverVersion)
    return CUDA_ERROR_INVALID_VALUE;
  const bool wantsOwn = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const Variant* best = nullptr;
  int bestVersion = 0;
  bool isNameKnown = false;
  // An ABI from before the per-thread variants has none, even if a later ABI of the function does.
  bool hasTwin = false;
  for (const Variant& variant : kVariants)
    hasTwin = hasTwin || (variant.own != nullptr && strcmp(variant.name, symbol) == 0);
  for (const Variant& variant : kVariants) {
    if (strcmp(variant.name, symbol) != 0) continue;
    isNameKnown = true;
    if (wantsOwn && hasTwin && variant.own == nullptr) continue;
    const int version = wantsOwn && variant.own != nullptr ? variant.ownVersion : variant.version;
    if (version > cudaVersion || version <= bestVersion) continue;
    best = &variant;
    bestVersion = version;
  }
  *pfn = best == nullptr ? nullptr : wantsOwn && best->own != nullptr ? best->own : best->function;
  status = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
           : isNameKnown   ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                           : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult status = find(symbol, pfn, cudaVersion, flags, found);
  return status == CUDA_SUCCESS && found != CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_ERROR_NOT_FOUND : status;
}

// An unknown function is not an error: the status says so, and the function pointer is null.
CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult status = find(symbol, pfn, cudaVersion, flags, found);
  if (status == CUDA_SUCCESS && symbolStatus != nullptr) *symbolStatus = found;
  return status;
}
