// Errors: names, entry points, invalid handles, failed contexts, and images.
#include <atomic>
#include <random>

#include "check.h"

using check::Primary;

TEST(results_have_names_and_descriptions) {
  const char* text = nullptr;
  OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
  OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(strcmp(text, "out of memory") == 0);
  EQUAL(cuGetErrorName(static_cast<CUresult>(10), &text), CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
  int named = 0;
  for (int code = 0; code < 1000; ++code) named += cuGetErrorName(static_cast<CUresult>(code), &text) == CUDA_SUCCESS;
  EQUAL(named, 101);
}

TEST(entry_points_are_found_by_version) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  OK(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status));
  CHECK(function == reinterpret_cast<void*>(&cuMemAlloc_v2));
  EQUAL(status, CU_GET_PROC_ADDRESS_SUCCESS);
  const struct {
    const char* name;
    int version;
    void* want;
  } cases[] = {
      {"cuCtxCreate", 3020, reinterpret_cast<void*>(&cuCtxCreate_v2)},
      {"cuCtxCreate", 11050, reinterpret_cast<void*>(&cuCtxCreate_v3)},
      {"cuCtxCreate", 13000, reinterpret_cast<void*>(&cuCtxCreate_v4)},
      {"cuEventElapsedTime", 12070, reinterpret_cast<void*>(&cuEventElapsedTime)},
      {"cuEventElapsedTime", 12080, reinterpret_cast<void*>(&cuEventElapsedTime_v2)},
      {"cuCtxGetDevice", 12090, reinterpret_cast<void*>(&cuCtxGetDevice)},
      {"cuCtxGetDevice", 13000, reinterpret_cast<void*>(&cuCtxGetDevice_v2)},
      {"cuGetProcAddress", 12000, reinterpret_cast<void*>(&cuGetProcAddress_v2)},
  };
  for (auto& each : cases) {
    OK(cuGetProcAddress_v2(each.name, &function, each.version, 0, &status));
    CHECK(function == each.want);
  }
  OK(cuGetProcAddress_v2("cuMemcpyHtoD", &function, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  CHECK(function == reinterpret_cast<void*>(&cuMemcpyHtoD_v2_ptds));
  OK(cuGetProcAddress_v2("cuLaunchHostFunc", &function, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  CHECK(function == reinterpret_cast<void*>(&cuLaunchHostFunc_ptsz));
  OK(cuGetProcAddress_v2("cuMemFree", &function, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  CHECK(function == reinterpret_cast<void*>(&cuMemFree_v2));
  OK(cuGetProcAddress_v2("cuNoSuchThing", &function, 12000, 0, &status));
  EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(function == nullptr);
  OK(cuGetProcAddress_v2("cuMemAllocAsync", &function, 11000, 0, &status));
  EQUAL(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CHECK(function == nullptr);
}

TEST(random_handles_never_crash) {
  Primary primary;
  std::mt19937_64 random(11);
  CUdeviceptr memory = check::memory(64);
  for (int round = 0; round < 3000; ++round) {
    // Random numbers of every size, and numbers close to valid handles.
    uint64_t value = random() >> (random() % 60);
    if (round % 3 == 0) value = reinterpret_cast<uint64_t>(check::stream()) + (random() % 64);
    if (value <= 2) continue;
    const auto stream = reinterpret_cast<CUstream>(value);
    const auto event = reinterpret_cast<CUevent>(value);
    const auto context = reinterpret_cast<CUcontext>(value);
    const bool isStream = cuStreamQuery(stream) == CUDA_SUCCESS;
    if (!isStream) {
      EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
      EQUAL(cuMemsetD8Async(memory, 0, 1, stream), CUDA_ERROR_INVALID_HANDLE);
    }
    EQUAL(cuStreamDestroy_v2(stream), isStream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
    EQUAL(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    EQUAL(cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
    if (context != primary.context) CHECK(cuCtxPushCurrent_v2(context) != CUDA_SUCCESS);
    CHECK(cuMemFree_v2(value) != CUDA_SUCCESS || value == memory);
  }
}

TEST(a_failed_context_stays_failed) {
  Primary primary(1);
  CUstream stream = check::stream(), other = check::stream();
  CUevent event = check::event();
  CUdeviceptr memory = check::memory(64), more = 0;
  static std::atomic<int> called;
  static std::atomic<CUresult> told;
  called = 0;
  told = CUDA_SUCCESS;
  OK(shoalSimStreamDelay(stream, 50000000));
  OK(cuLaunchHostFunc(stream, [](void*) { ++called; }, nullptr));
  OK(cuStreamAddCallback(stream, [](CUstream, CUresult status, void*) { told = status; }, nullptr, 0));
  OK(cuEventRecord(event, stream));
  OK(shoalSimInjectError(1, CUDA_ERROR_ILLEGAL_ADDRESS));
  EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuStreamQuery(other), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuMemAlloc_v2(&more, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuMemsetD8Async(memory, 0, 16, other), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuLaunchHostFunc(other, [](void*) { ++called; }, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  usleep(100000);
  EQUAL(called.load(), 0);
  EQUAL(told.load(), CUDA_ERROR_ILLEGAL_ADDRESS);
  // Other devices are not affected. As on hardware, this device is lost to the process, until the test heals it.
  {
    Primary healthy(0);
    more = check::memory(16);
    OK(cuMemFree_v2(more));
  }
  OK(cuDevicePrimaryCtxReset_v2(1));
  CUcontext again = nullptr;
  EQUAL(cuDevicePrimaryCtxRetain(&again, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuCtxCreate_v2(&again, 0, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  OK(shoalSimInjectError(1, CUDA_SUCCESS));
  OK(cuDevicePrimaryCtxRetain(&again, 1));
  OK(cuMemAlloc_v2(&more, 16));
  OK(cuDevicePrimaryCtxRelease_v2(1));
}

TEST(images_are_refused_with_a_reason) {
  Primary primary;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  const char ptx[] =
      "//\n// comment\n//\n\n.version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";
  const unsigned char elf[64] = {0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 190, 0};
  const unsigned fatbin[16] = {0xba55ed50, 0x00100001};
  OK(cuModuleLoadData(&module, ptx));
  OK(cuModuleUnload(module));
  EQUAL(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  EQUAL(cuModuleLoadData(&module, elf), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EQUAL(cuModuleLoadFatBinary(&module, fatbin), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EQUAL(cuModuleLoadData(&module, ".version 8.0\n.target sm_90\nrubbish\n"), CUDA_ERROR_INVALID_PTX);
  EQUAL(cuModuleLoadData(&module, "\177ELF"), CUDA_ERROR_INVALID_IMAGE);
  EQUAL(cuModuleLoad(&module, "/tmp"), CUDA_ERROR_FILE_NOT_FOUND);
  EQUAL(cuModuleLoadData(&module, "not an image"), CUDA_ERROR_INVALID_IMAGE);
  EQUAL(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
  EQUAL(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuModuleLoad(&module, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
  char log[200] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const char unsupported[] =
      ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n  wgmma.fence.sync.aligned;\n}\n";
  EQUAL(cuModuleLoadDataEx(&module, unsupported, 2, options, values), CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(strstr(log, "line 5; error   : the instruction 'wgmma.fence.sync.aligned' is not supported") != nullptr);
  EQUAL(reinterpret_cast<size_t>(values[1]), strlen(log));
  values[1] = reinterpret_cast<void*>(8);
  EQUAL(cuModuleLoadDataEx(&module, unsupported, 2, options, values), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EQUAL(strlen(log), 7);
  EQUAL(cuLibraryLoadData(&library, elf, nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EQUAL(cuModuleUnload(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EQUAL(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST(ptx_newer_than_the_device_runs_as_far_as_its_instructions_are_known) {
  check::softwareOnly("a driver refuses what is newer than itself");
  Primary primary;
  CUmodule module = nullptr;
  char log[400] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  const auto load = [&](const std::string& version, const std::string& body) {
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    log[0] = 0;
    const std::string text = ".version " + version +
                             "\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<3>;\n" + body +
                             "\nret;\n}\n";
    const CUresult status = cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
    if (status == CUDA_SUCCESS) OK(cuModuleUnload(module));
    return status;
  };
  const auto logHas = [&](const char* text) { CHECK(strstr(log, text) != nullptr); };
  for (const char* version : {"9.1", "9.4", "10.0", "11.7"}) OK(load(version, "add.s32 %r1, %r2, 1;"));
  // A new instruction, a new modifier, a new kind of operand, a new directive.
  EQUAL(load("9.4", "sparkle.b32 %r1, %r2;"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  for (const char* part : {"line 6;", "'sparkle.b32'", "PTX 9.4", "up to 9.0"}) logHas(part);
  EQUAL(load("9.4", "add.shiny.s32 %r1, %r2, 1;"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  for (const char* part : {"line 6;", "'add.shiny.s32'", "PTX 9.4"}) logHas(part);
  EQUAL(load("10.1", "add.s32 %r1, <%r2>, 1;"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  for (const char* part : {"line 6;", "'add.s32'", "PTX 10.1"}) logHas(part);
  EQUAL(load("9.4", ".glitter 3;"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  for (const char* part : {"line 6;", "'.glitter'", "PTX 9.4"}) logHas(part);
  EQUAL(load("9.4", "wgmma.fence.sync.aligned;"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  // In a version that the device knows, the same text is invalid or unsupported.
  EQUAL(load("9.0", "sparkle.b32 %r1, %r2;"), CUDA_ERROR_INVALID_PTX);
  CHECK(strstr(log, "PTX 9") == nullptr);
  EQUAL(load("9.0", "wgmma.fence.sync.aligned;"), CUDA_ERROR_NO_BINARY_FOR_GPU);
  for (const char* version : {"9", "9.10", "100.0", "nine"}) EQUAL(load(version, ""), CUDA_ERROR_INVALID_PTX);
}

TEST(linking_ptx_newer_than_the_device_keeps_its_version) {
  check::softwareOnly("a driver refuses what is newer than itself");
  Primary primary;
  const auto link = [](const char* body, std::string& whole) {
    CUlinkState state = nullptr;
    OK(cuLinkCreate_v2(0, nullptr, nullptr, &state));
    std::string text =
        std::string(".version 9.4\n.target sm_90\n.address_size 64\n.visible .entry k() {\n") + body + "\nret;\n}\n";
    CUresult status = cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "k", 0, nullptr, nullptr);
    void* image = nullptr;
    size_t bytes = 0;
    if (status == CUDA_SUCCESS) status = cuLinkComplete(state, &image, &bytes);
    if (status == CUDA_SUCCESS) whole = static_cast<const char*>(image);
    OK(cuLinkDestroy(state));
    return status;
  };
  std::string whole;
  OK(link("", whole));
  CHECK(whole.find(".version 9.4") != std::string::npos);
  EQUAL(link("sparkle;", whole), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}
