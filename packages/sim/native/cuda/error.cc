// The names and descriptions of the result codes.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "core/entry.h"
#include "core/report.h"

namespace {

struct Result {
  int code;
  const char* name;
  const char* description;
};

// Sorted by code.
constexpr Result kResults[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "driver is not initialized"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver is shutting down"},
    {5, "CUDA_ERROR_PROFILER_DISABLED", "profiler is disabled"},
    {6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", "profiler is not initialized"},
    {7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", "profiler was already started"},
    {8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "profiler was already stopped"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "the loaded library is a stub of the driver"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "the call needs a newer driver"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device is busy or not available"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA device found"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "device ordinal is out of range"},
    {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "device has no licence for this use"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "image is not valid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "no usable context"},
    {202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "context is already current"},
    {205, "CUDA_ERROR_MAP_FAILED", "mapping failed"},
    {206, "CUDA_ERROR_UNMAP_FAILED", "unmapping failed"},
    {207, "CUDA_ERROR_ARRAY_IS_MAPPED", "array is mapped"},
    {208, "CUDA_ERROR_ALREADY_MAPPED", "resource is already mapped"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "image has no code for this device"},
    {210, "CUDA_ERROR_ALREADY_ACQUIRED", "resource is already acquired"},
    {211, "CUDA_ERROR_NOT_MAPPED", "resource is not mapped"},
    {212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "resource is not mapped as an array"},
    {213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "resource is not mapped as a pointer"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable memory error found"},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "limit is not supported by the device"},
    {216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "context is in use by another thread"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not possible between these devices"},
    {218, "CUDA_ERROR_INVALID_PTX", "PTX compilation failed"},
    {219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "graphics context is not valid"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error found"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX compiler library not found"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "PTX version is not supported"},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX compilation is disabled"},
    {224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "execution affinity is not supported"},
    {225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", "device-side synchronization is not supported"},
    {226, "CUDA_ERROR_CONTAINED", "error was contained to this process"},
    {300, "CUDA_ERROR_INVALID_SOURCE", "source is not valid"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "a symbol of a shared object was not resolved"},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "a shared object failed to initialize"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "operating system call failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "handle is not valid"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "resource is not in a state that allows this"},
    {402, "CUDA_ERROR_LOSSY_QUERY", "the query would lose information"},
    {500, "CUDA_ERROR_NOT_FOUND", "name not found"},
    {600, "CUDA_ERROR_NOT_READY", "work is not finished"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal memory access by the device"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "launch needs more resources than there are"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "launch ran out of time"},
    {703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "launch does not fit the texturing mode"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access is not enabled"},
    {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "primary context is active"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {710, "CUDA_ERROR_ASSERT", "assertion failed on the device"},
    {711, "CUDA_ERROR_TOO_MANY_PEERS", "too many peers"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory is already registered"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory is not registered"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "illegal instruction"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation on the wrong address space"},
    {718, "CUDA_ERROR_INVALID_PC", "program counter is not valid"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "launch failed"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "cooperative launch has too many blocks"},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "kernel left tensor memory allocated"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation is not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation is not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system is not ready yet"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver parts do not match"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "compatibility mode is not supported on this device"},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "no connection to the MPS server"},
    {806, "CUDA_ERROR_MPS_RPC_FAILURE", "MPS call failed"},
    {807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "MPS server is not ready"},
    {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "MPS server has too many clients"},
    {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "MPS server has too many connections"},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "MPS client was terminated"},
    {811, "CUDA_ERROR_CDP_NOT_SUPPORTED", "dynamic parallelism is not supported"},
    {812, "CUDA_ERROR_CDP_VERSION_MISMATCH", "dynamic parallelism version does not match"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation is not allowed while the stream is captured"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "capture was invalidated by an error"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would join two captures"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture did not start in this stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capture has work that was not joined back"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "operation would depend on work outside of the capture"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would depend implicitly on the default stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "event is part of a capture"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "capture was started by another thread"},
    {909, "CUDA_ERROR_TIMEOUT", "time ran out"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "graph update does not fit the executable graph"},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", "error on an external device"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster size is not valid"},
    {913, "CUDA_ERROR_FUNCTION_NOT_LOADED", "function is not loaded"},
    {914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", "resource type is not valid"},
    {915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "resource configuration is not valid"},
    {916, "CUDA_ERROR_KEY_ROTATION", "key rotation in progress"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Result* find(CUresult error) {
  auto found = std::lower_bound(std::begin(kResults), std::end(kResults), static_cast<int>(error),
                                [](const Result& result, int code) { return result.code < code; });
  return found != std::end(kResults) && found->code == static_cast<int>(error) ? found : nullptr;
}

CUresult text(CUresult error, const char** out, const char* Result::* part) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Result* result = find(error);
  *out = result == nullptr ? nullptr : result->*part;
  return result == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

struct Reports {
  std::mutex mutex;
  std::map<int, const char*> texts;
};

Reports& reports() {
  static auto* shared = new Reports;
  return *shared;
}

}  // namespace

void shoal::describeResult(CUresult result, const std::string& report) {
  const Result* known = find(result);
  const std::string text = (known == nullptr ? "" : std::string(known->description) + ": ") + report;
  std::lock_guard lock(reports().mutex);
  // Callers may still read the earlier text, so it is kept: one text per failed context.
  reports().texts[result] = strdup(text.c_str());
}

CUresult cuGetErrorName(CUresult error, const char** pStr) { return text(error, pStr, &Result::name); }
CUresult cuGetErrorString(CUresult error, const char** pStr) {
  const CUresult status = text(error, pStr, &Result::description);
  if (status != CUDA_SUCCESS) return status;
  std::lock_guard lock(reports().mutex);
  auto reported = reports().texts.find(error);
  if (reported != reports().texts.end()) *pStr = reported->second;
  else if (error == CUDA_ERROR_ILLEGAL_ADDRESS)
    *pStr = "illegal memory access by the device; SHOAL_SIM_CHECK=1 reports the thread and the line";
  return CUDA_SUCCESS;
}
