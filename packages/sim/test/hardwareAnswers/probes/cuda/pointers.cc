// Attributes of pointers.
#include "ask.h"

namespace ask {

void pointers() {
  primary();
  CUdeviceptr d = 0, m = 0;
  void* pinned = nullptr;
  static char plain[64];
  cuMemAlloc_v2(&d, 1024);
  cuMemAllocManaged(&m, 4096, 1);
  cuMemHostAlloc(&pinned, 4096, 0);
  void* page = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  cuMemHostRegister_v2(page, 4096, 0);
  struct {
    const char* name;
    CUdeviceptr pointer;
  } kinds[] = {{"device", d},
               {"interior", d + 64},
               {"managed", m},
               {"pinned", reinterpret_cast<CUdeviceptr>(pinned)},
               {"registered", reinterpret_cast<CUdeviceptr>(page)},
               {"pageable", reinterpret_cast<CUdeviceptr>(plain)},
               {"null", 0},
               {"bogus", 4096}};
  for (auto& kind : kinds) {
    for (int attribute = 0; attribute <= 22; ++attribute) {
      unsigned char out[64] = {};
      char name[64];
      snprintf(name, sizeof name, "%s %d", kind.name, attribute);
      const int status = cuPointerGetAttribute(out, static_cast<CUpointer_attribute>(attribute), kind.pointer);
      say(name, status);
      // Values that are plain facts, no addresses.
      uint32_t word = 0;
      memcpy(&word, out, 4);
      const bool isPlain =
          attribute == 2 || attribute == 6 || attribute == 8 || attribute == 9 || attribute == 13 || attribute == 16;
      if (status == 0 && isPlain) say((std::string(name) + " value").c_str(), word);
      uint64_t wide = 0;
      memcpy(&wide, out, 8);
      if (status == 0) fprintf(stderr, "%s value %llx\n", name, static_cast<unsigned long long>(wide));
      if (status == 0 && attribute == 3) say((std::string(name) + " same").c_str(), wide == kind.pointer);
      if (status == 0 && attribute == 11)
        say((std::string(name) + " offset").c_str(), static_cast<long long>(kind.pointer - wide));
      if (status == 0 && attribute == 12) say((std::string(name) + " size").c_str(), static_cast<long long>(wide));
    }
    int type = -7, ordinal = -7;
    CUcontext context = wild<CUcontext>(77);
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                    CU_POINTER_ATTRIBUTE_CONTEXT};
    void* out[] = {&type, &ordinal, &context};
    say((std::string(kind.name) + " several").c_str(), cuPointerGetAttributes(3, wanted, out, kind.pointer));
    say((std::string(kind.name) + " several type").c_str(), type);
    say((std::string(kind.name) + " several ordinal").c_str(), ordinal);
    say((std::string(kind.name) + " several has context").c_str(), context != nullptr);
  }
  unsigned one = 1;
  say("set sync", cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, d));
  say("set sync pinned",
      cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, reinterpret_cast<CUdeviceptr>(pinned)));
  say("set type", cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
  say("set NULL", cuPointerSetAttribute(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, d));
  say("get NULL", cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
  say("several 0", cuPointerGetAttributes(0, nullptr, nullptr, d));
}

}  // namespace ask
