// The names of the runtime's error codes and what they say.
#include <algorithm>
#include <iterator>

#include "entry.h"

namespace {

struct Error {
  int code;
  const char* name;
  // Null where the driver has the same code and words for it.
  const char* description;
};

// In order of the codes.
constexpr Error kErrors[] = {
    {0, "cudaSuccess", nullptr},
    {1, "cudaErrorInvalidValue", nullptr},
    {2, "cudaErrorMemoryAllocation", nullptr},
    {3, "cudaErrorInitializationError", nullptr},
    {4, "cudaErrorCudartUnloading", nullptr},
    {5, "cudaErrorProfilerDisabled", nullptr},
    {6, "cudaErrorProfilerNotInitialized", nullptr},
    {7, "cudaErrorProfilerAlreadyStarted", nullptr},
    {8, "cudaErrorProfilerAlreadyStopped", nullptr},
    {9, "cudaErrorInvalidConfiguration", "the configuration of a launch is not valid"},
    {12, "cudaErrorInvalidPitchValue", "pitch is too large"},
    {13, "cudaErrorInvalidSymbol", "no such symbol"},
    {16, "cudaErrorInvalidHostPointer", "not a pointer of the host"},
    {17, "cudaErrorInvalidDevicePointer", "not a pointer of the device"},
    {18, "cudaErrorInvalidTexture", "texture is not valid"},
    {19, "cudaErrorInvalidTextureBinding", "texture is not bound"},
    {20, "cudaErrorInvalidChannelDescriptor", "channel descriptor is not valid"},
    {21, "cudaErrorInvalidMemcpyDirection", "direction of the copy is not valid"},
    {22, "cudaErrorAddressOfConstant", nullptr},
    {23, "cudaErrorTextureFetchFailed", nullptr},
    {24, "cudaErrorTextureNotBound", nullptr},
    {25, "cudaErrorSynchronizationError", nullptr},
    {26, "cudaErrorInvalidFilterSetting", "linear filtering is not possible with this type"},
    {27, "cudaErrorInvalidNormSetting", "normalised reading is not possible with this type"},
    {28, "cudaErrorMixedDeviceExecution", nullptr},
    {31, "cudaErrorNotYetImplemented", nullptr},
    {32, "cudaErrorMemoryValueTooLarge", nullptr},
    {34, "cudaErrorStubLibrary", nullptr},
    {35, "cudaErrorInsufficientDriver", "the driver is older than the runtime"},
    {36, "cudaErrorCallRequiresNewerDriver", nullptr},
    {37, "cudaErrorInvalidSurface", "surface is not valid"},
    {43, "cudaErrorDuplicateVariableName", nullptr},
    {44, "cudaErrorDuplicateTextureName", nullptr},
    {45, "cudaErrorDuplicateSurfaceName", nullptr},
    {46, "cudaErrorDevicesUnavailable", nullptr},
    {49, "cudaErrorIncompatibleDriverContext", nullptr},
    {52, "cudaErrorMissingConfiguration", "a launch was not configured"},
    {53, "cudaErrorPriorLaunchFailure", "an earlier launch failed"},
    {65, "cudaErrorLaunchMaxDepthExceeded", nullptr},
    {66, "cudaErrorLaunchFileScopedTex", nullptr},
    {67, "cudaErrorLaunchFileScopedSurf", nullptr},
    {68, "cudaErrorSyncDepthExceeded", "launches are nested too deeply to wait for"},
    {69, "cudaErrorLaunchPendingCountExceeded", nullptr},
    {98, "cudaErrorInvalidDeviceFunction", "the device has no such function"},
    {100, "cudaErrorNoDevice", nullptr},
    {101, "cudaErrorInvalidDevice", nullptr},
    {102, "cudaErrorDeviceNotLicensed", nullptr},
    {103, "cudaErrorSoftwareValidityNotEstablished", "the software could not be validated"},
    {127, "cudaErrorStartupFailure", "the runtime did not start"},
    {200, "cudaErrorInvalidKernelImage", nullptr},
    {201, "cudaErrorDeviceUninitialized", nullptr},
    {205, "cudaErrorMapBufferObjectFailed", nullptr},
    {206, "cudaErrorUnmapBufferObjectFailed", nullptr},
    {207, "cudaErrorArrayIsMapped", nullptr},
    {208, "cudaErrorAlreadyMapped", nullptr},
    {209, "cudaErrorNoKernelImageForDevice", nullptr},
    {210, "cudaErrorAlreadyAcquired", nullptr},
    {211, "cudaErrorNotMapped", nullptr},
    {212, "cudaErrorNotMappedAsArray", nullptr},
    {213, "cudaErrorNotMappedAsPointer", nullptr},
    {214, "cudaErrorECCUncorrectable", nullptr},
    {215, "cudaErrorUnsupportedLimit", nullptr},
    {216, "cudaErrorDeviceAlreadyInUse", nullptr},
    {217, "cudaErrorPeerAccessUnsupported", nullptr},
    {218, "cudaErrorInvalidPtx", nullptr},
    {219, "cudaErrorInvalidGraphicsContext", nullptr},
    {220, "cudaErrorNvlinkUncorrectable", nullptr},
    {221, "cudaErrorJitCompilerNotFound", nullptr},
    {222, "cudaErrorUnsupportedPtxVersion", nullptr},
    {223, "cudaErrorJitCompilationDisabled", nullptr},
    {224, "cudaErrorUnsupportedExecAffinity", nullptr},
    {225, "cudaErrorUnsupportedDevSideSync", nullptr},
    {226, "cudaErrorContained", nullptr},
    {300, "cudaErrorInvalidSource", nullptr},
    {301, "cudaErrorFileNotFound", nullptr},
    {302, "cudaErrorSharedObjectSymbolNotFound", nullptr},
    {303, "cudaErrorSharedObjectInitFailed", nullptr},
    {304, "cudaErrorOperatingSystem", nullptr},
    {400, "cudaErrorInvalidResourceHandle", nullptr},
    {401, "cudaErrorIllegalState", nullptr},
    {402, "cudaErrorLossyQuery", nullptr},
    {500, "cudaErrorSymbolNotFound", nullptr},
    {600, "cudaErrorNotReady", nullptr},
    {700, "cudaErrorIllegalAddress", nullptr},
    {701, "cudaErrorLaunchOutOfResources", nullptr},
    {702, "cudaErrorLaunchTimeout", nullptr},
    {703, "cudaErrorLaunchIncompatibleTexturing", nullptr},
    {704, "cudaErrorPeerAccessAlreadyEnabled", nullptr},
    {705, "cudaErrorPeerAccessNotEnabled", nullptr},
    {708, "cudaErrorSetOnActiveProcess", nullptr},
    {709, "cudaErrorContextIsDestroyed", nullptr},
    {710, "cudaErrorAssert", nullptr},
    {711, "cudaErrorTooManyPeers", nullptr},
    {712, "cudaErrorHostMemoryAlreadyRegistered", nullptr},
    {713, "cudaErrorHostMemoryNotRegistered", nullptr},
    {714, "cudaErrorHardwareStackError", nullptr},
    {715, "cudaErrorIllegalInstruction", nullptr},
    {716, "cudaErrorMisalignedAddress", nullptr},
    {717, "cudaErrorInvalidAddressSpace", nullptr},
    {718, "cudaErrorInvalidPc", nullptr},
    {719, "cudaErrorLaunchFailure", nullptr},
    {720, "cudaErrorCooperativeLaunchTooLarge", nullptr},
    {721, "cudaErrorTensorMemoryLeak", nullptr},
    {800, "cudaErrorNotPermitted", nullptr},
    {801, "cudaErrorNotSupported", nullptr},
    {802, "cudaErrorSystemNotReady", nullptr},
    {803, "cudaErrorSystemDriverMismatch", nullptr},
    {804, "cudaErrorCompatNotSupportedOnDevice", nullptr},
    {805, "cudaErrorMpsConnectionFailed", nullptr},
    {806, "cudaErrorMpsRpcFailure", nullptr},
    {807, "cudaErrorMpsServerNotReady", nullptr},
    {808, "cudaErrorMpsMaxClientsReached", nullptr},
    {809, "cudaErrorMpsMaxConnectionsReached", nullptr},
    {810, "cudaErrorMpsClientTerminated", nullptr},
    {811, "cudaErrorCdpNotSupported", nullptr},
    {812, "cudaErrorCdpVersionMismatch", nullptr},
    {900, "cudaErrorStreamCaptureUnsupported", nullptr},
    {901, "cudaErrorStreamCaptureInvalidated", nullptr},
    {902, "cudaErrorStreamCaptureMerge", nullptr},
    {903, "cudaErrorStreamCaptureUnmatched", nullptr},
    {904, "cudaErrorStreamCaptureUnjoined", nullptr},
    {905, "cudaErrorStreamCaptureIsolation", nullptr},
    {906, "cudaErrorStreamCaptureImplicit", nullptr},
    {907, "cudaErrorCapturedEvent", nullptr},
    {908, "cudaErrorStreamCaptureWrongThread", nullptr},
    {909, "cudaErrorTimeout", nullptr},
    {910, "cudaErrorGraphExecUpdateFailure", nullptr},
    {911, "cudaErrorExternalDevice", nullptr},
    {912, "cudaErrorInvalidClusterSize", nullptr},
    {913, "cudaErrorFunctionNotLoaded", nullptr},
    {914, "cudaErrorInvalidResourceType", nullptr},
    {915, "cudaErrorInvalidResourceConfiguration", nullptr},
    {999, "cudaErrorUnknown", nullptr},
    {10000, "cudaErrorApiFailureBase", "a failure with no code of its own"},
};

constexpr char kUnknown[] = "unrecognized error code";

const Error* find(int code) {
  const auto* found = std::lower_bound(std::begin(kErrors), std::end(kErrors), code,
                                       [](const Error& error, int wanted) { return error.code < wanted; });
  return found != std::end(kErrors) && found->code == code ? found : nullptr;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  const Error* found = find(error);
  return found == nullptr ? kUnknown : found->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const Error* found = find(error);
  if (found == nullptr) return kUnknown;
  if (found->description != nullptr) return found->description;
  const char* text = nullptr;
  if (cuGetErrorString(static_cast<CUresult>(error), &text) == CUDA_SUCCESS) return text;
  return "an error that only the CUDA runtime has";
}

cudaError_t cudaDriverGetVersion(int* driverVersion) { return shoal::cudart::finish(cuDriverGetVersion(driverVersion)); }

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  if (runtimeVersion == nullptr) return shoal::cudart::finish(CUDA_ERROR_INVALID_VALUE);
  *runtimeVersion = SHOAL_CUDART_VERSION;
  return CUDA_SUCCESS;
}
