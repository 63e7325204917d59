// The additions of the software device's CUDA runtime to driver calls: the device, context and default stream they use,
// the arguments it refuses before it calls the driver, and the texts of errors.
#include <shoal/cudart.h>

#include <string>
#include <thread>

#include "check.h"
#include "ptx_cases.h"

TEST(entry_points_are_those_of_the_default_stream_that_was_asked_for) {
  const auto legacy = reinterpret_cast<void*>(&cuMemcpyHtoD_v2),
             perThread = reinterpret_cast<void*>(&cuMemcpyHtoD_v2_ptds);
  const struct {
    unsigned long long flags;
    void *want, *wantOfTwin;  // the twin uses the per-thread default stream
  } cases[] = {{cudaEnableDefault, legacy, perThread},
               {cudaEnableLegacyStream, legacy, legacy},
               {cudaEnablePerThreadDefaultStream, perThread, perThread}};
  for (auto& each : cases) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    EQUAL(cudaGetDriverEntryPoint("cuMemcpyHtoD", &found, each.flags, &result), 0);
    CHECK(found == each.want);
    EQUAL(result, cudaDriverEntryPointSuccess);
    EQUAL(cudaGetDriverEntryPoint_ptsz("cuMemcpyHtoD", &found, each.flags, nullptr), 0);
    CHECK(found == each.wantOfTwin);
    EQUAL(cudaGetDriverEntryPointByVersion("cuMemcpyHtoD", &found, 12000, each.flags, nullptr), 0);
    CHECK(found == each.want);
    EQUAL(cudaGetDriverEntryPointByVersion_ptsz("cuMemcpyHtoD", &found, 12000, each.flags, &result), 0);
    CHECK(found == each.wantOfTwin);
    EQUAL(cudaGetDriverEntryPointByVersion("cuMemAllocAsync", &found, 11000, each.flags, &result), 0);
    EQUAL(result, cudaDriverEntryPointVersionNotSufficent);
  }
}

TEST(only_a_cooperative_launch_must_fit_on_the_device_at_once) {
  EQUAL(cudaSetDevice(0), 0);
  CUmodule module = cases::load(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry any()\n{\nret;\n}\n");
  CUfunction any = nullptr;
  OK(cuModuleGetFunction(&any, module, "any"));
  int multiprocessors = 0, blocks = 0;
  EQUAL(cudaDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), 0);
  EQUAL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, any, 32, 0), 0);
  const auto together = static_cast<unsigned>(multiprocessors * blocks);
  const struct {
    dim3 grid, block;
    size_t sharedBytes;
    int status, cooperativeStatus;
  } cases[] = {{{together, 1, 1}, {32, 1, 1}, 0, 0, 0},
               {{together + 1, 1, 1}, {32, 1, 1}, 0, 0, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE},
               {{1, 65536, 1}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
               {{1, 1, 65536}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
               {{1, 1, 1}, {1, 1025, 1}, 0, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
               {{1, 1, 1}, {1, 1, 65}, 0, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
               {{1, 1, 1}, {1, 1, 1}, 48 * 1024, 0, 0},
               {{1, 1, 1}, {1, 1, 1}, 48 * 1024 + 1, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE}};
  for (auto& each : cases) {
    EQUAL(cudaLaunchKernel(any, each.grid, each.block, nullptr, each.sharedBytes, nullptr), each.status);
    EQUAL(cudaLaunchKernel_ptsz(any, each.grid, each.block, nullptr, each.sharedBytes, nullptr), each.status);
    EQUAL(cudaLaunchCooperativeKernel(any, each.grid, each.block, nullptr, each.sharedBytes, nullptr),
          each.cooperativeStatus);
    EQUAL(cudaLaunchCooperativeKernel_ptsz(any, each.grid, each.block, nullptr, each.sharedBytes, nullptr),
          each.cooperativeStatus);
  }
  EQUAL(cudaDeviceSynchronize(), 0);
  OK(cuModuleUnload(module));
}

TEST(work_without_a_stream_is_for_the_default_stream_of_its_twin) {
  EQUAL(cudaSetDevice(0), 0);
  static char pages[16];
  void* memory = nullptr;
  EQUAL(cudaMalloc(&memory, 16), 0);
  const cudaHostFn_t nothing = [](void*) {};
  cudaMemcpy3DParms box{};
  box.srcPtr = {pages, 4, 4, 4};
  box.dstPtr = {memory, 4, 4, 4};
  box.extent = {4, 4, 1};
  box.kind = cudaMemcpyHostToDevice;
  CUstreamCaptureStatus status;
  OK(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
  EQUAL(cudaMemcpyAsync_ptsz(memory, pages, 16, cudaMemcpyHostToDevice, nullptr), 0);
  EQUAL(cudaMemsetAsync_ptsz(memory, 1, 16, nullptr), 0);
  EQUAL(cudaMemset2DAsync_ptsz(memory, 4, 1, 4, 4, nullptr), 0);
  EQUAL(cudaMemset3DAsync_ptsz({memory, 4, 4, 4}, 1, {4, 4, 1}, nullptr), 0);
  EQUAL(cudaMemcpy2DAsync_ptsz(memory, 4, pages, 4, 4, 4, cudaMemcpyHostToDevice, nullptr), 0);
  EQUAL(cudaMemcpy3DAsync_ptsz(&box, nullptr), 0);
  EQUAL(cudaLaunchHostFunc_ptsz(nullptr, nothing, nullptr), 0);
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
  size_t nodes = 0;
  OK(cuGraphGetNodes(graph, nullptr, &nodes));
  EQUAL(nodes, 7);
  OK(cuGraphDestroy(graph));
  OK(cuStreamIsCapturing(CU_STREAM_PER_THREAD, &status));
  EQUAL(status, CU_STREAM_CAPTURE_STATUS_NONE);
  EQUAL(cudaFree(memory), 0);
}

TEST(devices_that_are_not_there_are_refused) {
  int count = 0;
  EQUAL(cudaGetDeviceCount(&count), 0);
  CHECK(count >= 2);
  EQUAL(cudaSetDevice(1), 0);
  for (const int device : {-1, count}) {
    EQUAL(cudaSetDevice(device), CUDA_ERROR_INVALID_DEVICE);
    EQUAL(cudaInitDevice(device, 0, 0), CUDA_ERROR_INVALID_DEVICE);
    EQUAL(cudaDeviceEnablePeerAccess(device, 0), CUDA_ERROR_INVALID_DEVICE);
    EQUAL(cudaDeviceDisablePeerAccess(device), CUDA_ERROR_INVALID_DEVICE);
  }
  EQUAL(cudaInitDevice(0, 0, 0), 0);
  EQUAL(cudaInitDevice(count - 1, 0, 1), 0);
  EQUAL(cudaInitDevice(0, 0, 2), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaDeviceDisablePeerAccess(0), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EQUAL(cudaDeviceEnablePeerAccess(0, 0), 0);
  EQUAL(cudaDeviceEnablePeerAccess(0, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EQUAL(cudaDeviceDisablePeerAccess(0), 0);
  EQUAL(cudaGetDevice(nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaGetDeviceCount(nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaGetDeviceProperties(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaSetDevice(0), 0);
}

TEST(a_context_that_the_program_made_current_is_used) {
  CUcontext context = nullptr, current = nullptr;
  OK(cuInit(0));
  OK(cuCtxCreate_v4(&context, nullptr, 0, 1));
  void* memory = nullptr;
  EQUAL(cudaMalloc(&memory, 16), 0);
  OK(cuCtxGetCurrent(&current));
  CHECK(current == context);
  OK(cuPointerGetAttribute(&current, CU_POINTER_ATTRIBUTE_CONTEXT, reinterpret_cast<CUdeviceptr>(memory)));
  CHECK(current == context);
  int device = -1;
  EQUAL(cudaGetDevice(&device), 0);
  EQUAL(device, 1);
  EQUAL(cudaFree(memory), 0);
  OK(cuCtxDestroy_v2(context));
}

TEST(the_runtime_retains_a_primary_context_once) {
  const auto isActive = [] {
    unsigned flags = 0;
    int active = -1;
    OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
    return active == 1;
  };
  const auto releaseAll = [&] {
    CHECK(isActive());
    OK(cuDevicePrimaryCtxRelease_v2(1));
    CHECK(!isActive());
  };
  for (int time = 0; time < 3; ++time) EQUAL(cudaSetDevice(1), 0);
  releaseAll();
  // The context is retained again after all releases, and after a reset.
  for (int time = 0; time < 3; ++time) EQUAL(cudaSetDevice(1), 0);
  CHECK(isActive());
  OK(cuDevicePrimaryCtxReset_v2(1));
  for (int time = 0; time < 3; ++time) EQUAL(cudaSetDevice(1), 0);
  releaseAll();
  EQUAL(cudaSetDevice(1), 0);
  EQUAL(cudaDeviceReset(), 0);
  CHECK(!isActive());
  EQUAL(cudaSetDevice(1), 0);
  releaseAll();
  EQUAL(cudaSetDevice(0), 0);
}

TEST(flags_of_a_device_are_those_that_were_meant) {
  unsigned flags = 0;
  EQUAL(cudaSetDevice(1), 0);
  EQUAL(cudaInitDevice(1, CU_CTX_SCHED_YIELD, 1), 0);
  EQUAL(cudaGetDeviceFlags(&flags), 0);
  EQUAL(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_YIELD);
  EQUAL(cudaInitDevice(1, CU_CTX_SCHED_SPIN, 0), 0);
  EQUAL(cudaGetDeviceFlags(&flags), 0);
  EQUAL(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_YIELD);
  EQUAL(cudaSetDeviceFlags(CU_CTX_SCHED_SPIN), 0);
  EQUAL(cudaGetDeviceFlags(&flags), 0);
  EQUAL(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_SPIN);
  EQUAL(cudaSetDeviceFlags(CU_CTX_SCHED_AUTO), 0);
  EQUAL(cudaSetDevice(0), 0);
}

TEST(what_has_no_address_to_be_written_to_is_refused) {
  EQUAL(cudaSetDevice(0), 0);
  cudaChannelFormatDesc bytes{8, 0, 0, 0, cudaChannelFormatKindUnsigned};
  cudaArray_t array = nullptr;
  EQUAL(cudaMallocArray(&array, &bytes, 8, 8, CUDA_ARRAY3D_SURFACE_LDST), 0);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  const cudaTextureDesc texture{};
  cudaTextureObject_t object = 0;
  cudaSurfaceObject_t surface = 0;
  EQUAL(cudaCreateTextureObject(nullptr, &resource, &texture, nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaCreateTextureObject(&object, nullptr, &texture, nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaCreateTextureObject(&object, &resource, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaCreateSurfaceObject(nullptr, &resource), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaCreateSurfaceObject(&surface, nullptr), CUDA_ERROR_INVALID_VALUE);
  resource.resType = static_cast<cudaResourceType>(4);
  EQUAL(cudaCreateTextureObject(&object, &resource, &texture, nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaFreeArray(array), 0);
  EQUAL(cudaMalloc(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaMalloc3D(nullptr, {1, 1, 1}), CUDA_ERROR_INVALID_VALUE);
  cudaPitchedPtr box{};
  EQUAL(cudaMalloc3D(&box, {1, SIZE_MAX, 2}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaRuntimeGetVersion(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(attributes_of_a_kernel_are_those_of_the_driver) {
  EQUAL(cudaSetDevice(0), 0);
  CUmodule module = cases::load(
      ".version 8.0\n.target sm_90\n.address_size 64\n.const .align 4 .b8 table[24];\n"
      ".visible .entry some() .maxntid 96\n{\n.shared .align 4 .b8 room[40];\n.local .align 4 .b8 own[12];\nret;\n}\n"
      ".visible .entry pairs() .reqnctapercluster 2, 3, 4\n{\nret;\n}\n");
  for (const char* name : {"some", "pairs"}) {
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, module, name));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 37));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 1));
    cudaFuncAttributes found;
    memset(&found, 0xff, sizeof found);
    EQUAL(cudaFuncGetAttributes(&found, function), 0);
    const struct {
      long long got;
      CUfunction_attribute attribute;
    } all[] = {{static_cast<long long>(found.sharedSizeBytes), CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
               {static_cast<long long>(found.constSizeBytes), CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES},
               {static_cast<long long>(found.localSizeBytes), CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES},
               {found.maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
               {found.numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS},
               {found.ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION},
               {found.binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION},
               {found.cacheModeCA, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA},
               {found.maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES},
               {found.preferredShmemCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT},
               {found.clusterDimMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET},
               {found.requiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH},
               {found.requiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT},
               {found.requiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH},
               {found.nonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED},
               {found.clusterSchedulingPolicyPreference, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE}};
    for (auto& each : all) {
      int want = -1;
      OK(cuFuncGetAttribute(&want, each.attribute, function));
      if (each.got != want)
        throw check::Failure(std::string(name) + ", attribute " + std::to_string(each.attribute) + ": got " +
                             std::to_string(each.got) + ", want " + std::to_string(want));
    }
    EQUAL(cudaFuncGetAttributes(nullptr, function), CUDA_ERROR_INVALID_VALUE);
  }
  OK(cuModuleUnload(module));
}

TEST(errors_that_the_driver_has_no_words_for_have_the_runtimes) {
  const struct {
    int code;
    const char* words;
  } cases[] = {{9, "configuration of a launch"},
               {12, "pitch"},
               {13, "symbol"},
               {16, "pointer of the host"},
               {17, "pointer of the device"},
               {18, "texture is not valid"},
               {19, "not bound"},
               {20, "channel"},
               {21, "direction"},
               {26, "filtering"},
               {27, "normalised"},
               {35, "older than the runtime"},
               {37, "surface"},
               {52, "not configured"},
               {53, "earlier launch"},
               {68, "nested"},
               {98, "no such function"},
               {103, "validated"},
               {127, "did not start"},
               {10000, "no code of its own"}};
  for (auto& each : cases) {
    CHECK(strncmp(cudaGetErrorName(each.code), "cudaError", 9) == 0);
    if (strstr(cudaGetErrorString(each.code), each.words) == nullptr)
      throw check::Failure(std::to_string(each.code) + ": " + cudaGetErrorString(each.code));
  }
  // Codes next to known codes have other texts.
  for (const int code : {-1, 10, 14, 22, 28, 38, 54, 128, 9999, 10001}) {
    for (auto& each : cases) CHECK(each.code == code || strstr(cudaGetErrorString(code), each.words) == nullptr);
  }
}

TEST(a_copy_of_registered_memory_waits_for_the_default_stream) {
  EQUAL(cudaSetDevice(0), 0);
  void *pinned = nullptr, *memory = nullptr;
  EQUAL(cudaMallocHost(&pinned, 16), 0);
  EQUAL(cudaMalloc(&memory, 16), 0);
  char pages[16] = {};
  for (const bool isSource : {true, false}) {
    memset(pinned, 1, 16);
    memset(pages, 2, 16);
    EQUAL(cudaMemset(memory, 3, 16), 0);
    OK(shoalSimStreamDelay(nullptr, 20000000));
    if (isSource) {
      EQUAL(cudaMemcpyAsync(pinned, memory, 16, cudaMemcpyDeviceToHost, nullptr), 0);
      EQUAL(cudaMemcpy(pages, pinned, 16, cudaMemcpyHostToHost), 0);
      EQUAL(pages[15], 3);
    } else {
      EQUAL(cudaMemcpyAsync(memory, pinned, 16, cudaMemcpyHostToDevice, nullptr), 0);
      EQUAL(cudaMemcpy(pinned, pages, 16, cudaMemcpyHostToHost), 0);
      EQUAL(cudaMemcpy(pages, memory, 16, cudaMemcpyDeviceToHost), 0);
      EQUAL(pages[15], 1);
    }
  }
  EQUAL(cudaFreeHost(pinned), 0);
  EQUAL(cudaFree(memory), 0);
}

TEST(a_thread_whose_context_was_destroyed_gets_the_one_of_its_device) {
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuCtxCreate_v4(&context, nullptr, 0, 0));
  OK(cuCtxSetCurrent(nullptr));
  std::thread([&] {
    EQUAL(cudaSetDevice(1), 0);
    OK(cuCtxSetCurrent(context));
    int device = -1;
    EQUAL(cudaGetDevice(&device), 0);
    EQUAL(device, 0);
    std::thread([&] { OK(cuCtxDestroy_v2(context)); }).join();
    void* memory = nullptr;
    EQUAL(cudaMalloc(&memory, 16), 0);
    CUdevice of = -1;
    OK(cuCtxGetDevice(&of));
    EQUAL(of, 1);
    EQUAL(cudaFree(memory), 0);
  }).join();
}
