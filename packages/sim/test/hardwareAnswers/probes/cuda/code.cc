// Entry points by version, modules and libraries.
#include "ask.h"

namespace ask {

void procAddress() {
  void* p = nullptr;
  auto ask = [&](const char* title, const char* symbol, int version, cuuint64_t flags) {
    CUdriverProcAddressQueryResult found = static_cast<CUdriverProcAddressQueryResult>(-1);
    p = reinterpret_cast<void*>(0x77);
    const int status = cuGetProcAddress_v2(symbol, &p, version, flags, &found);
    say(title, status);
    say((std::string(title) + " status").c_str(), static_cast<int>(found));
    say((std::string(title) + " pointer").c_str(), p == nullptr ? 0 : p == reinterpret_cast<void*>(0x77) ? 77 : 1);
    return p;
  };
  ask("unknown", "cuNoSuchFunction", 12000, 0);
  ask("suffixed", "cuMemAlloc_v2", 12000, 0);
  ask("version 0", "cuMemAlloc", 0, 0);
  ask("version 1000", "cuMemAlloc", 1000, 0);
  ask("version 99999", "cuMemAlloc", 99999, 0);
  ask("too old", "cuMemAllocAsync", 11010, 0);
  ask("too old own", "cuMemcpyHtoDAsync", 6000, 2);
  ask("flags 3", "cuMemAlloc", 12000, 3);
  ask("flags 4", "cuMemAlloc", 12000, 4);
  ask("empty", "", 12000, 0);
  say("unknown without status", cuGetProcAddress_v2("cuNoSuchFunction", &p, 12000, 0, nullptr));
  say("unknown by the old function", cuGetProcAddress("cuNoSuchFunction", &p, 12000, 0));
  void* own = ask("own", "cuMemcpyHtoDAsync", 12000, 2);
  void* legacy = ask("legacy", "cuMemcpyHtoDAsync", 12000, 1);
  say("own differs", own != legacy);
  void* create20 = ask("cuCtxCreate 3020", "cuCtxCreate", 3020, 0);
  void* create114 = ask("cuCtxCreate 11040", "cuCtxCreate", 11040, 0);
  void* create125 = ask("cuCtxCreate 12050", "cuCtxCreate", 12050, 0);
  say("cuCtxCreate differ", create20 != create114 && create114 != create125);
  void* v1 = ask("cuGetProcAddress 11030", "cuGetProcAddress", 11030, 0);
  void* v2 = ask("cuGetProcAddress 12000", "cuGetProcAddress", 12000, 0);
  say("cuGetProcAddress differ", v1 != v2);
}

void modules() {
  primary();
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUmoduleLoadingMode mode = 0;
  const char elf[64] = "\177ELF";
  const char badPtx[] = ".version 7.0\n.target sm_50\n.address_size 64\nthis is no ptx\n";
  say("garbage", cuModuleLoadData(&module, "garbage garbage garbage garbage garbage garbage garbage garbage"));
  say("empty", cuModuleLoadData(&module, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
  say("bad ptx", cuModuleLoadData(&module, badPtx));
  say("newer ptx", cuModuleLoadData(&module, ".version 99.0\n.target sm_90\n.address_size 64\n"));
  say("bad elf", cuModuleLoadData(&module, elf));
  say("NULL", cuModuleLoadData(&module, nullptr));
  say("NULL out", cuModuleLoadData(nullptr, badPtx));
  say("missing file", cuModuleLoad(&module, "/nonexistent/file.cubin"));
  say("NULL file", cuModuleLoad(&module, nullptr));
  say("folder", cuModuleLoad(&module, "/tmp"));
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  say("bad ptx with log", cuModuleLoadDataEx(&module, badPtx, 2, options, values));
  say("log is written", log[0] != '\0');
  fprintf(stderr, "log (%zu): %s\n", reinterpret_cast<size_t>(values[1]), log);
  say("library garbage", cuLibraryLoadData(&library, "garbage garbage garbage garbage garbage garbage", nullptr,
                                           nullptr, 0, nullptr, nullptr, 0));
  say("library bad ptx", cuLibraryLoadData(&library, badPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  say("library missing file",
      cuLibraryLoadFromFile(&library, "/nonexistent/x", nullptr, nullptr, 0, nullptr, nullptr, 0));
  say("loading mode", cuModuleGetLoadingMode(&mode));
  say("loading mode value", mode);
}

}  // namespace ask
