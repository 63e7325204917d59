// The names and descriptions of the runtime's error codes.
#include <algorithm>
#include <cstddef>

#include "entry.h"

namespace {

struct Text {
  int code;
  const char* text;
};

#define SHOAL_NAME(code) {code, #code},
constexpr Text kNames[] = {SHOAL_CUDA_ERRORS(SHOAL_NAME)};

// Errors without a driver code, or with other words than the driver's.
constexpr Text kDescriptions[] = {
    {9, "the configuration of a launch is not valid"},
    {12, "pitch is too large"},
    {13, "no such symbol"},
    {16, "not a pointer of the host"},
    {17, "not a pointer of the device"},
    {18, "texture is not valid"},
    {19, "texture is not bound"},
    {20, "channel descriptor is not valid"},
    {21, "direction of the copy is not valid"},
    {26, "linear filtering is not possible with this type"},
    {27, "normalised reading is not possible with this type"},
    {35, "the driver is older than the runtime"},
    {37, "surface is not valid"},
    {52, "a launch was not configured"},
    {53, "an earlier launch failed"},
    {68, "launches are nested too deeply to wait for"},
    {98, "the device has no such function"},
    {103, "the software could not be validated"},
    {127, "the runtime did not start"},
    {10000, "a failure with no code of its own"},
};

constexpr char kUnknown[] = "unrecognized error code";

// Searches a table that is sorted by code. Returns null for an unknown code.
template <size_t N>
const char* find(const Text (&table)[N], int code) {
  const auto* found =
      std::lower_bound(table, table + N, code, [](const Text& entry, int wanted) { return entry.code < wanted; });
  return found != table + N && found->code == code ? found->text : nullptr;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  const char* name = find(kNames, error);
  return name == nullptr ? kUnknown : name;
}

const char* cudaGetErrorString(cudaError_t error) {
  if (find(kNames, error) == nullptr) return kUnknown;
  const char* text = find(kDescriptions, error);
  if (text != nullptr) return text;
  if (cuGetErrorString(static_cast<CUresult>(error), &text) == CUDA_SUCCESS) return text;
  return "an error that only the CUDA runtime has";
}

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  return shoal::cudart::finish(cuDriverGetVersion(driverVersion));
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  if (runtimeVersion == nullptr) return shoal::cudart::finish(CUDA_ERROR_INVALID_VALUE);
  *runtimeVersion = SHOAL_CUDART_VERSION;
  return CUDA_SUCCESS;
}
