// Pools of memory.
#include "mapped.h"

namespace ask {

namespace {

CUmemPoolProps poolOn(int device, unsigned handleTypes = 0) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = static_cast<CUmemAllocationHandleType>(handleTypes);
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

uint64_t read(CUmemoryPool pool, CUmemPool_attribute attribute) {
  uint64_t value = 0;
  cuMemPoolGetAttribute(pool, attribute, &value);
  return value;
}

}  // namespace

void pools() {
  cuInit(0);
  CUmemoryPool pool = nullptr;
  CUmemPoolProps properties = poolOn(0);
  say("create without context", cuMemPoolCreate(&pool, &properties));
  say("destroy without context", cuMemPoolDestroy(pool));
  primary();
  struct {
    const char* name;
    CUmemLocation location;
    unsigned handleTypes;
    int type;
  } kinds[] = {{"device", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, 1},
               {"descriptor", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 1, 1},
               {"win32", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 2, 1},
               {"fabric", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 8, 1},
               {"handle type 64", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 64, 1},
               {"device 99", {CU_MEM_LOCATION_TYPE_DEVICE, 99}, 0, 1},
               {"host", {CU_MEM_LOCATION_TYPE_HOST, 0}, 0, 1},
               {"host with descriptor", {CU_MEM_LOCATION_TYPE_HOST, 0}, 1, 1},
               {"node 0", {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, 0, 1},
               {"node current", {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}, 0, 1},
               {"nowhere", {CU_MEM_LOCATION_TYPE_NONE, 0}, 0, 1},
               {"type 0", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, 0},
               {"managed", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, 2}};
  for (auto& kind : kinds) {
    properties = poolOn(0, kind.handleTypes);
    properties.location = kind.location;
    properties.allocType = static_cast<CUmemAllocationType>(kind.type);
    const int status = cuMemPoolCreate(&pool, &properties);
    say(std::string("create ") + kind.name, status);
    if (status == 0) say(std::string("destroy ") + kind.name, cuMemPoolDestroy(pool));
  }
  properties = poolOn(0);
  properties.reserved[0] = 1;
  say("create reserved byte", cuMemPoolCreate(&pool, &properties));
  properties = poolOn(0);
  properties.usage = 8;
  say("create usage 8", cuMemPoolCreate(&pool, &properties));
  properties = poolOn(0);
  say("create NULL", cuMemPoolCreate(nullptr, &properties));
  say("create NULL properties", cuMemPoolCreate(&pool, nullptr));
  cuMemPoolCreate(&pool, &properties);
  for (int attribute = 0; attribute <= 9; ++attribute) {
    uint64_t value = 0;
    const std::string name = "attribute " + std::to_string(attribute);
    const int status = cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), &value);
    say(name, status);
    if (status == 0)
      say(name + " value", static_cast<long long>(attribute <= 3 ? static_cast<uint32_t>(value) : value));
    value = 0;
    say(name + " set 0", cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), &value));
    value = 1;
    say(name + " set 1", cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), &value));
    say(name + " get NULL", cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), nullptr));
  }
  cuMemPoolDestroy(pool);
  cuMemPoolCreate(&pool, &properties);
  CUstream stream = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  CUdeviceptr memory = 0;
  constexpr auto used = CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
  constexpr auto reserved = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
  say("allocate 0", cuMemAllocFromPoolAsync(&memory, 0, pool, stream));
  say("allocate NULL", cuMemAllocFromPoolAsync(nullptr, 16, pool, stream));
  say("allocate 2^50", cuMemAllocFromPoolAsync(&memory, size_t{1} << 50, pool, stream));
  say("allocate", cuMemAllocFromPoolAsync(&memory, 1000, pool, stream));
  say("used", static_cast<long long>(read(pool, used)));
  say("reserved", static_cast<long long>(read(pool, reserved)));
  for (int attribute = 1; attribute <= 21; ++attribute) {
    unsigned char out[64] = {};
    const std::string name = "pointer " + std::to_string(attribute);
    const int status = cuPointerGetAttribute(out, static_cast<CUpointer_attribute>(attribute), memory + 5);
    say(name, status);
    uint64_t wide = 0;
    memcpy(&wide, out, 8);
    const bool isWord =
        attribute == 2 || attribute == 6 || attribute == 8 || attribute == 9 || attribute == 10 || attribute == 13;
    if (status == 0 && isWord) say(name + " value", static_cast<uint32_t>(wide));
    if (status == 0 && attribute == 1) say(name + " is set", wide != 0);
    if (status == 0 && attribute == 11) say(name + " offset", static_cast<long long>(memory - wide));
    if (status == 0 && (attribute == 12 || attribute == 14 || attribute == 16))
      say(name + " value", static_cast<long long>(wide));
    if (status == 0 && attribute == 17) say(name + " is the pool", reinterpret_cast<CUmemoryPool>(wide) == pool);
  }
  CUdeviceptr base = 0;
  size_t size = 0;
  say("range", cuMemGetAddressRange_v2(&base, &size, memory + 5));
  say("range size", static_cast<long long>(size));
  say("fill beyond", cuMemsetD8_v2(memory, 1, 1001));
}

// Freed behind work that has not come by.
void poolOrder() {
  primary();
  CUmemoryPool pool = nullptr;
  CUmemPoolProps properties = poolOn(0);
  cuMemPoolCreate(&pool, &properties);
  CUstream stream = nullptr, second = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  cuStreamCreate(&second, CU_STREAM_NON_BLOCKING);
  CUdeviceptr memory = 0, other = 0;
  constexpr auto used = CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
  cuMemAllocFromPoolAsync(&memory, 1000, pool, stream);
  void* pinned = nullptr;
  cuMemHostAlloc(&pinned, 64, 0);
  auto* word = static_cast<volatile unsigned*>(pinned);
  *word = 0;
  cuStreamWaitValue32_v2(stream, reinterpret_cast<CUdeviceptr>(pinned), 1, 0);
  say("free queued", cuMemFreeAsync(memory, stream));
  say("used while the free is queued", static_cast<long long>(read(pool, used)));
  say("allocate again in the stream", cuMemAllocFromPoolAsync(&other, 1000, pool, stream));
  say("allocate again is the same", other == memory);
  CUdeviceptr third = 0;
  say("allocate in another stream", cuMemAllocFromPoolAsync(&third, 1000, pool, second));
  say("allocate in another is the same", third == memory);
  say("destroy with memory in use", cuMemPoolDestroy(pool));
  *word = 1;
  say("sync", cuStreamSynchronize(stream));
  say("fill memory of a destroyed pool", cuMemsetD8_v2(other, 1, 16));
  say("cuMemFree of pooled", cuMemFree_v2(other));
  say("free in another stream", cuMemFreeAsync(third, stream));
  say("sync at the end", cuCtxSynchronize());
}

// What a pool keeps.
void poolThreshold() {
  primary();
  CUmemoryPool pool = nullptr;
  CUmemPoolProps properties = poolOn(0);
  CUstream stream = nullptr;
  CUdeviceptr memory = 0, large = 0;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  constexpr auto used = CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
  constexpr auto reserved = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
  cuMemPoolCreate(&pool, &properties);
  cuMemAllocFromPoolAsync(&memory, 64 << 20, pool, stream);
  say("reserved for 64 MiB", static_cast<long long>(read(pool, reserved)));
  cuMemAllocFromPoolAsync(&large, (64 << 20) + 1, pool, stream);
  say("reserved for 64 MiB and a byte more", static_cast<long long>(read(pool, reserved)));
  say("used for both", static_cast<long long>(read(pool, used)));
  cuMemFreeAsync(large, stream);
  cuStreamSynchronize(stream);
  say("reserved after one was freed", static_cast<long long>(read(pool, reserved)));
  cuMemFreeAsync(memory, stream);
  say("used after a free", static_cast<long long>(read(pool, used)));
  cuStreamSynchronize(stream);
  say("reserved after sync", static_cast<long long>(read(pool, reserved)));
  uint64_t threshold = ~uint64_t{0};
  say("threshold", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  cuMemAllocFromPoolAsync(&memory, 64 << 20, pool, stream);
  cuMemFreeAsync(memory, stream);
  cuStreamSynchronize(stream);
  say("reserved with a threshold", read(pool, reserved) >= 64 << 20);
  say("trim to 0", cuMemPoolTrimTo(pool, 0));
  say("reserved after trim", static_cast<long long>(read(pool, reserved)));
  say("trim to 2^50", cuMemPoolTrimTo(pool, size_t{1} << 50));
  properties.maxSize = 3 << 20;
  CUmemoryPool bounded = nullptr;
  say("create with a maximum", cuMemPoolCreate(&bounded, &properties));
  say("allocate to the maximum", cuMemAllocFromPoolAsync(&memory, 3 << 20, bounded, stream));
  say("allocate one more", cuMemAllocFromPoolAsync(&memory, 1 << 20, bounded, stream));
  say("allocate many more", cuMemAllocFromPoolAsync(&memory, 64 << 20, bounded, stream));
}

void poolRights() {
  primary();
  CUmemoryPool pool = nullptr;
  CUmemPoolProps properties = poolOn(0);
  cuMemPoolCreate(&pool, &properties);
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, there = {CU_MEM_LOCATION_TYPE_DEVICE, 1},
                nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
  CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
  say("get own", cuMemPoolGetAccess(&flags, pool, &here));
  say("get own value", flags);
  say("get device 99", cuMemPoolGetAccess(&flags, pool, &nowhere));
  say("get host", cuMemPoolGetAccess(&flags, pool, &host));
  say("get NULL", cuMemPoolGetAccess(nullptr, pool, &here));
  CUmemAccessDesc access = {here, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  say("set own none", cuMemPoolSetAccess(pool, &access, 1));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  say("set own read", cuMemPoolSetAccess(pool, &access, 1));
  access = {nowhere, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  say("set device 99", cuMemPoolSetAccess(pool, &access, 1));
  access.location = host;
  say("set host", cuMemPoolSetAccess(pool, &access, 1));
  say("set count 0", cuMemPoolSetAccess(pool, &access, 0));
  say("set NULL", cuMemPoolSetAccess(pool, nullptr, 1));
  int count = 0;
  cuDeviceGetCount(&count);
  if (count > 1) {
    cuMemPoolGetAccess(&flags, pool, &there);
    say("get other value", flags);
    access = {there, CU_MEM_ACCESS_FLAGS_PROT_READ};
    say("set other read", cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    say("set other", cuMemPoolSetAccess(pool, &access, 1));
    cuMemPoolGetAccess(&flags, pool, &there);
    say("get other value set", flags);
  }
}

// Copies by device 0 from and to memory of device 1, before it has access and after.
void peerMemory() {
  cuInit(0);
  int count = 0;
  cuDeviceGetCount(&count);
  if (count < 2) return;
  CUcontext one = nullptr, two = nullptr;
  cuDevicePrimaryCtxRetain(&one, 0);
  cuDevicePrimaryCtxRetain(&two, 1);
  cuCtxSetCurrent(two);
  CUdeviceptr plain = 0, pooled = 0, own = 0;
  cuMemAlloc_v2(&plain, 1024);
  CUmemoryPool pool = nullptr;
  const CUmemPoolProps properties = poolOn(1);
  cuMemPoolCreate(&pool, &properties);
  cuMemAllocFromPoolAsync(&pooled, 1024, pool, nullptr);
  cuCtxSynchronize();
  const CUdeviceptr range = reserve(kPiece);
  CUmemGenericAllocationHandle piece = 0;
  const auto there = on(1);
  cuMemCreate(&piece, kPiece, &there, 0);
  cuMemMap(range, kPiece, 0, piece, 0);
  allow(range, kPiece, 1);
  cuCtxSetCurrent(one);
  cuMemAlloc_v2(&own, 1024);
  CUstream stream = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  std::vector<char> host(16);
  const std::pair<const char*, CUdeviceptr> kinds[] = {{"plain", plain}, {"pool", pooled}, {"mapped", range}};
  for (const bool hasAccess : {false, true}) {
    for (auto& [kind, at] : kinds) {
      const std::string name = std::string(kind) + (hasAccess ? " with access " : " ");
      say(name + "cuMemcpyAsync from", cuMemcpyAsync(own, at, 16, stream));
      say(name + "cuMemcpyAsync to", cuMemcpyAsync(at, own, 16, stream));
      say(name + "cuMemcpyDtoDAsync from", cuMemcpyDtoDAsync_v2(own, at, 16, stream));
      say(name + "cuMemcpyDtoDAsync to", cuMemcpyDtoDAsync_v2(at, own, 16, stream));
      say(name + "cuMemcpyPeerAsync from", cuMemcpyPeerAsync(own, one, at, two, 16, stream));
      say(name + "cuMemcpyPeerAsync to", cuMemcpyPeerAsync(at, two, own, one, 16, stream));
      say(name + "cuMemcpyPeerAsync from, wrong contexts", cuMemcpyPeerAsync(own, two, at, one, 16, stream));
      say(name + "cuMemcpyDtoD from", cuMemcpyDtoD_v2(own, at, 16));
      say(name + "cuMemcpyPeer from", cuMemcpyPeer(own, one, at, two, 16));
      say(name + "cuMemcpyDtoH", cuMemcpyDtoH_v2(host.data(), at, 16));
      say(name + "cuMemcpyHtoD", cuMemcpyHtoD_v2(at, host.data(), 16));
      say(name + "cuMemsetD8Async", cuMemsetD8Async(at, 0, 16, stream));
      say(name + "synchronize", cuStreamSynchronize(stream));
    }
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    cuCtxEnablePeerAccess(two, 0);
    cuMemPoolSetAccess(pool, &access, 1);
    cuMemSetAccess(range, kPiece, &access, 1);
  }
}

// Pools of managed memory, of the host's, and those that a fabric could share.
void poolKinds() {
  primary();
  CUstream stream = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  struct {
    const char* name;
    CUmemLocation location;
    unsigned handleTypes;
    int type;
  } kinds[] = {{"managed", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, 2},
               {"managed on the host", {CU_MEM_LOCATION_TYPE_HOST, 0}, 0, 2},
               {"managed nowhere", {CU_MEM_LOCATION_TYPE_NONE, 0}, 0, 2},
               {"managed with descriptor", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 1, 2},
               {"managed on device 99", {CU_MEM_LOCATION_TYPE_DEVICE, 99}, 0, 2},
               {"host", {CU_MEM_LOCATION_TYPE_HOST, 0}, 0, 1},
               {"node 0", {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, 0, 1},
               {"fabric", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 8, 1}};
  for (auto& kind : kinds) {
    const std::string name = kind.name;
    CUmemPoolProps properties = poolOn(0, kind.handleTypes);
    properties.location = kind.location;
    properties.allocType = static_cast<CUmemAllocationType>(kind.type);
    CUmemoryPool pool = nullptr;
    const int status = cuMemPoolCreate(&pool, &properties);
    say(name + " create", status);
    if (status != 0) continue;
    CUdeviceptr memory = 0;
    const int allocated = cuMemAllocFromPoolAsync(&memory, 4096, pool, stream);
    say(name + " allocate", allocated);
    if (kind.handleTypes == 8) {
      CUmemFabricHandle fabric;
      say(name + " export", cuMemPoolExportToShareableHandle(&fabric, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0));
    }
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    say(name + " rights", cuMemPoolGetAccess(&flags, pool, &here));
    say(name + " rights value", flags);
    const CUmemAccessDesc access = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    say(name + " set rights", cuMemPoolSetAccess(pool, &access, 1));
    if (allocated != 0) continue;
    say(name + " fill", cuMemsetD8Async(memory, 42, 4096, stream));
    say(name + " sync", cuStreamSynchronize(stream));
    for (const int attribute : {1, 2, 4, 8, 9, 10, 13, 16}) {
      unsigned char out[64] = {};
      const int described = cuPointerGetAttribute(out, static_cast<CUpointer_attribute>(attribute), memory);
      say(name + " pointer " + std::to_string(attribute), described);
      int32_t word = 0;
      memcpy(&word, out, 4);
      if (described == 0 && attribute != 1 && attribute != 4)
        say(name + " pointer " + std::to_string(attribute) + " value", word);
    }
    if (kind.type == 2) say(name + " read by the host", *reinterpret_cast<unsigned char*>(memory));
    say(name + " free", cuMemFreeAsync(memory, stream));
    say(name + " sync at the end", cuStreamSynchronize(stream));
  }
}

void poolPlaces() {
  primary();
  CUmemoryPool byDefault = nullptr, current = nullptr, own = nullptr, found = nullptr;
  say("default", cuDeviceGetDefaultMemPool(&byDefault, 0));
  say("current", cuDeviceGetMemPool(&current, 0));
  say("current is default", current == byDefault);
  say("default NULL", cuDeviceGetDefaultMemPool(nullptr, 0));
  say("default device 99", cuDeviceGetDefaultMemPool(&found, 99));
  say("current device 99", cuDeviceGetMemPool(&found, 99));
  say("destroy default", cuMemPoolDestroy(byDefault));
  CUmemPoolProps properties = poolOn(0);
  cuMemPoolCreate(&own, &properties);
  say("set", cuDeviceSetMemPool(0, own));
  cuDeviceGetMemPool(&current, 0);
  say("set seen", current == own);
  say("set NULL", cuDeviceSetMemPool(0, nullptr));
  say("set device 99", cuDeviceSetMemPool(99, own));
  int count = 0;
  cuDeviceGetCount(&count);
  if (count > 1) say("set other device", cuDeviceSetMemPool(1, own));
  say("destroy current", cuMemPoolDestroy(own));
  cuDeviceGetMemPool(&current, 0);
  say("destroyed gives default", current == byDefault);
  struct {
    const char* name;
    CUmemLocation location;
    int type;
  } places[] = {
      {"device", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 1},       {"device 99", {CU_MEM_LOCATION_TYPE_DEVICE, 99}, 1},
      {"host", {CU_MEM_LOCATION_TYPE_HOST, 0}, 1},           {"node 0", {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, 1},
      {"nowhere", {CU_MEM_LOCATION_TYPE_NONE, 0}, 1},        {"device managed", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 2},
      {"device type 0", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0}};
  for (auto& place : places) {
    const std::string name = place.name;
    const auto type = static_cast<CUmemAllocationType>(place.type);
    say(name + " default", cuMemGetDefaultMemPool(&found, &place.location, type));
    say(name + " current", cuMemGetMemPool(&current, &place.location, type));
  }
  CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  cuMemGetDefaultMemPool(&found, &here, CU_MEM_ALLOCATION_TYPE_PINNED);
  say("same default", found == byDefault);
  say("set by place", cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, byDefault));
  say("NULL place", cuMemGetMemPool(&found, nullptr, CU_MEM_ALLOCATION_TYPE_PINNED));
  int descriptor = -1;
  say("export default",
      cuMemPoolExportToShareableHandle(&descriptor, byDefault, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
}

}  // namespace ask
