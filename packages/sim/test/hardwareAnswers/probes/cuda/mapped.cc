// Virtual memory management: addresses, physical memory, mappings, rights.
#include "mapped.h"

namespace ask {

void addresses() {
  cuInit(0);
  CUdeviceptr at = 0, other = 0;
  say("without context", cuMemAddressReserve(&at, kPiece, 0, 0, 0));
  say("free without context", cuMemAddressFree(at, kPiece));
  primary();
  say("size 0", cuMemAddressReserve(&at, 0, 0, 0, 0));
  say("size 100", cuMemAddressReserve(&at, 100, 0, 0, 0));
  say("size 4096", cuMemAddressReserve(&at, 4096, 0, 0, 0));
  say("size 64 KiB", cuMemAddressReserve(&at, 65536, 0, 0, 0));
  say("alignment 3 MiB", cuMemAddressReserve(&at, kPiece, 3 << 20, 0, 0));
  say("alignment 4096", cuMemAddressReserve(&at, kPiece, 4096, 0, 0));
  say("alignment 1 GiB", cuMemAddressReserve(&at, kPiece, size_t{1} << 30, 0, 0));
  say("alignment 1 GiB kept", at % (size_t{1} << 30) == 0);
  say("flags 1", cuMemAddressReserve(&at, kPiece, 0, 0, 1));
  say("NULL", cuMemAddressReserve(nullptr, kPiece, 0, 0, 0));
  say("2^62", cuMemAddressReserve(&at, size_t{1} << 62, 0, 0, 0));
  say("2^64 - 2^21", cuMemAddressReserve(&at, ~size_t{0} << 21, 0, 0, 0));
  say("reserve", cuMemAddressReserve(&at, 8 * kPiece, 0, 0, 0));
  say("aligned to 2 MiB", at % kPiece == 0);
  say("hint taken", cuMemAddressReserve(&other, kPiece, 0, at, 0));
  say("hint taken followed", other == at);
  say("hint odd", cuMemAddressReserve(&other, kPiece, 0, at + 100, 0));
  say("free part", cuMemAddressFree(at, kPiece));
  say("free interior", cuMemAddressFree(at + kPiece, 7 * kPiece));
  say("free too much", cuMemAddressFree(at, 16 * kPiece));
  say("free", cuMemAddressFree(at, 8 * kPiece));
  say("free twice", cuMemAddressFree(at, 8 * kPiece));
  say("free 0", cuMemAddressFree(0, kPiece));
  say("hint free", cuMemAddressReserve(&other, 8 * kPiece, 0, at, 0));
  say("hint free followed", other == at);
}

void physicalMemory() {
  cuInit(0);
  size_t granularity = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties = on(0), read = {};
  say("granularity without context",
      cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  say("create without context", cuMemCreate(&handle, kPiece, &properties, 0));
  say("release without context", cuMemRelease(handle));
  primary();
  struct {
    const char* name;
    CUmemLocation location;
    unsigned handleTypes;
    CUmemAllocationType type = CU_MEM_ALLOCATION_TYPE_PINNED;
  } kinds[] = {{"device", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0},
               {"device with descriptor", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 1},
               {"device with win32", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 2},
               {"device with win32 kmt", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 4},
               {"device with fabric", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 8},
               {"device with descriptor and fabric", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 9},
               {"device with handle type 16", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 16},
               {"device 99", {CU_MEM_LOCATION_TYPE_DEVICE, 99}, 0},
               {"device -1", {CU_MEM_LOCATION_TYPE_DEVICE, -1}, 0},
               {"nowhere", {CU_MEM_LOCATION_TYPE_NONE, 0}, 0},
               {"place 9", {static_cast<CUmemLocationType>(9), 0}, 0},
               {"host", {CU_MEM_LOCATION_TYPE_HOST, 0}, 0},
               {"host with descriptor", {CU_MEM_LOCATION_TYPE_HOST, 0}, 1},
               {"node 0", {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, 0},
               {"node 0 with descriptor", {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, 1},
               {"node 12345", {CU_MEM_LOCATION_TYPE_HOST_NUMA, 12345}, 0},
               {"node current", {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}, 0},
               {"type 0", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, static_cast<CUmemAllocationType>(0)},
               {"managed", {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, CU_MEM_ALLOCATION_TYPE_MANAGED}};
  for (auto& kind : kinds) {
    const std::string name = kind.name;
    properties = on(0, kind.handleTypes);
    properties.location = kind.location;
    properties.type = kind.type;
    for (const int option : {0, 1}) {
      granularity = 0;
      const int status = cuMemGetAllocationGranularity(&granularity, &properties,
                                                       static_cast<CUmemAllocationGranularity_flags>(option));
      say(name + (option == 0 ? " minimum" : " recommended"), status);
      if (status == 0)
        say(name + (option == 0 ? " minimum value" : " recommended value"), static_cast<long long>(granularity));
    }
    const int status = cuMemCreate(&handle, kPiece, &properties, 0);
    say(name + " create", status);
    if (status != 0) continue;
    say(name + " properties", cuMemGetAllocationPropertiesFromHandle(&read, handle));
    say(name + " properties place", read.location.type);
    say(name + " properties id", read.location.id);
    say(name + " properties types", read.requestedHandleTypes);
    say(name + " release", cuMemRelease(handle));
  }
  struct {
    const char* name;
    unsigned char compression, rdma;
    unsigned short usage;
  } flags[] = {{"compressible", 1, 0, 0}, {"compression 7", 7, 0, 0}, {"rdma", 0, 1, 0},   {"rdma 2", 0, 2, 0},
               {"tile pool", 0, 0, 1},    {"decompress", 0, 0, 2},    {"usage 8", 0, 0, 8}};
  for (auto& flag : flags) {
    const std::string name = flag.name;
    properties = on(0);
    properties.allocFlags.compressionType = flag.compression;
    properties.allocFlags.gpuDirectRDMACapable = flag.rdma;
    properties.allocFlags.usage = flag.usage;
    const int status = cuMemCreate(&handle, kPiece, &properties, 0);
    say(name, status);
    if (status != 0) continue;
    cuMemGetAllocationPropertiesFromHandle(&read, handle);
    say(name + " got compression", read.allocFlags.compressionType);
    say(name + " got rdma", read.allocFlags.gpuDirectRDMACapable);
    cuMemRelease(handle);
  }
  properties = on(0);
  properties.allocFlags.reserved[0] = 1;
  say("reserved byte", cuMemCreate(&handle, kPiece, &properties, 0));
  properties = on(0);
  say("granularity option 2",
      cuMemGetAllocationGranularity(&granularity, &properties, static_cast<CUmemAllocationGranularity_flags>(2)));
  say("granularity NULL", cuMemGetAllocationGranularity(nullptr, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  say("granularity NULL properties",
      cuMemGetAllocationGranularity(&granularity, nullptr, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  say("size 0", cuMemCreate(&handle, 0, &properties, 0));
  say("size 4096", cuMemCreate(&handle, 4096, &properties, 0));
  say("size 3 MiB", cuMemCreate(&handle, 3 << 20, &properties, 0));
  say("size 2^50", cuMemCreate(&handle, size_t{1} << 50, &properties, 0));
  say("flags 1", cuMemCreate(&handle, kPiece, &properties, 1));
  say("NULL", cuMemCreate(nullptr, kPiece, &properties, 0));
  say("NULL properties", cuMemCreate(&handle, kPiece, nullptr, 0));
  size_t before = 0, after = 0, total = 0;
  cuMemGetInfo_v2(&before, &total);
  cuMemCreate(&handle, 64 * kPiece, &properties, 0);
  cuMemGetInfo_v2(&after, &total);
  say("counted when created", before - after >= 64 * kPiece);
  say("properties NULL", cuMemGetAllocationPropertiesFromHandle(nullptr, handle));
  cuMemRelease(handle);
  cuMemGetInfo_v2(&after, &total);
  say("counted when released", before - after >= 64 * kPiece);
}

namespace {

// All attributes of a pointer into the range, under a name of their own.
void describe(const std::string& what, CUdeviceptr pointer, CUdeviceptr range) {
  for (int attribute = 1; attribute <= 21; ++attribute) {
    unsigned char out[64] = {};
    const std::string name = what + " " + std::to_string(attribute);
    const int status = cuPointerGetAttribute(out, static_cast<CUpointer_attribute>(attribute), pointer);
    say(name, status);
    if (status != 0) continue;
    uint64_t wide = 0;
    memcpy(&wide, out, 8);
    const bool isWord =
        attribute == 2 || attribute == 6 || attribute == 8 || attribute == 9 || attribute == 10 || attribute == 13;
    if (isWord) say(name + " value", static_cast<int32_t>(wide));
    if (attribute == 1 || attribute == 17) say(name + " is set", wide != 0);
    if (attribute == 11 || attribute == 19)
      say(name + " offset", wide == 0 ? -1 : static_cast<long long>(wide - range));
    if (attribute == 12 || attribute == 14 || attribute == 16 || attribute == 18)
      say(name + " value", static_cast<long long>(wide));
  }
}

}  // namespace

void mappings() {
  primary();
  const CUdeviceptr range = reserve(8 * kPiece);
  const auto handle = make(2 * kPiece), small = make(kPiece);
  CUmemGenericAllocationHandle retained = 0;
  CUdeviceptr base = 0;
  size_t size = 0;
  say("size 0", cuMemMap(range, 0, 0, handle, 0));
  say("flags 1", cuMemMap(range, 2 * kPiece, 0, handle, 1));
  say("odd address", cuMemMap(range + 4096, 2 * kPiece, 0, handle, 0));
  say("odd size", cuMemMap(range, 4096, 0, handle, 0));
  say("odd offset", cuMemMap(range, 2 * kPiece, 4096, handle, 0));
  say("part", cuMemMap(range, kPiece, 0, handle, 0));
  say("part at an offset", cuMemMap(range, kPiece, kPiece, handle, 0));
  say("too large", cuMemMap(range, 4 * kPiece, 0, handle, 0));
  say("offset too large", cuMemMap(range, 2 * kPiece, kPiece, handle, 0));
  say("no range", cuMemMap(kPiece, 2 * kPiece, 0, handle, 0));
  describe("attribute of reserved", range + 5, range);
  say("address range of reserved", cuMemGetAddressRange_v2(&base, &size, range + 5));
  say("unmap of reserved", cuMemUnmap(range, 8 * kPiece));
  say("unmap of a piece of reserved", cuMemUnmap(range + kPiece, kPiece));
  say("unmap odd of reserved", cuMemUnmap(range + 4096, 4096));
  say("unmap of nothing", cuMemUnmap(kPiece, kPiece));
  // From here on: two pieces twice, one beside them, and then three pieces without memory.
  say("map", cuMemMap(range, 2 * kPiece, 0, handle, 0));
  say("the same again", cuMemMap(range + 2 * kPiece, 2 * kPiece, 0, handle, 0));
  say("beside them", cuMemMap(range + 4 * kPiece, kPiece, 0, small, 0));
  say("overlapping", cuMemMap(range + kPiece, 2 * kPiece, 0, handle, 0));
  say("taken", cuMemMap(range, 2 * kPiece, 0, handle, 0));
  say("free the range", cuMemAddressFree(range, 8 * kPiece));
  say("retain", cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range + 3 * kPiece + 7)));
  say("retain same handle", retained == handle);
  say("retain of reserved", cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range + 6 * kPiece)));
  say("retain NULL", cuMemRetainAllocationHandle(nullptr, reinterpret_cast<void*>(range)));
  describe("attribute without rights", range + 3 * kPiece + 5, range);
  say("address range before access", cuMemGetAddressRange_v2(&base, &size, range + kPiece + 5));
  say("allow all at once", allow(range, 5 * kPiece));
  describe("attribute", range + 3 * kPiece + 5, range);
  say("address range", cuMemGetAddressRange_v2(&base, &size, range + 3 * kPiece + 5));
  say("address range base", static_cast<long long>(base - range));
  say("address range size", static_cast<long long>(size));
  say("address range of the rest", cuMemGetAddressRange_v2(&base, &size, range + 6 * kPiece));
  say("fill across mappings", cuMemsetD8_v2(range, 1, 5 * kPiece));
  say("fill beyond the mappings", cuMemsetD8_v2(range + 5 * kPiece - 16, 1, 32));
  std::vector<unsigned char> bytes(2 * kPiece);
  cuMemsetD8_v2(range + 2 * kPiece, 42, 32);
  say("copy of the same memory", cuMemcpyDtoH_v2(bytes.data(), range, 32));
  say("copy of the same memory value", bytes[31]);
  say("copy across mappings out", cuMemcpyDtoH_v2(bytes.data(), range + kPiece, 2 * kPiece));
  say("copy across mappings in", cuMemcpyHtoD_v2(range + kPiece, bytes.data(), 2 * kPiece));
  say("copy across mappings on the device", cuMemcpyDtoD_v2(range + kPiece, range + 3 * kPiece, 2 * kPiece));
  say("copy beyond the mappings", cuMemcpyDtoH_v2(bytes.data(), range + 4 * kPiece, 2 * kPiece));
  say("sync", cuCtxSynchronize());
  say("unmap half", cuMemUnmap(range, kPiece));
  say("unmap across halves", cuMemUnmap(range + kPiece, 2 * kPiece));
  say("unmap size 0", cuMemUnmap(range, 0));
  say("unmap more than is reserved", cuMemUnmap(range, 16 * kPiece));
  say("take rights away", allow(range, 2 * kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE));
  say("address range without rights again", cuMemGetAddressRange_v2(&base, &size, range));
  describe("attribute without rights again", range + 5, range);
  say("release while mapped", cuMemRelease(handle));
  say("copy after release", cuMemcpyDtoH_v2(bytes.data(), range + 2 * kPiece, 32));
  say("unmap two at once", cuMemUnmap(range, 4 * kPiece));
  say("unmap with what is reserved", cuMemUnmap(range + 4 * kPiece, 4 * kPiece));
  say("unmap twice", cuMemUnmap(range + 4 * kPiece, kPiece));
  say("free", cuMemAddressFree(range, 8 * kPiece));
  say("unmap after free", cuMemUnmap(range, kPiece));
  int descriptor = -1;
  const CUdeviceptr plain = mapped();
  allow(plain, kPiece);
  int isDmaBuf = 0;
  cuDeviceGetAttribute(&isDmaBuf, 124, 0);
  if (isDmaBuf == 0) {
    say("dma-buf", cuMemGetHandleForAddressRange(&descriptor, plain, kPiece, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  }
  say("dma-buf type 2",
      cuMemGetHandleForAddressRange(&descriptor, plain, kPiece, static_cast<CUmemRangeHandleType>(2), 0));
  say("dma-buf NULL", cuMemGetHandleForAddressRange(nullptr, plain, kPiece, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

void rights() {
  primary();
  int count = 0;
  cuDeviceGetCount(&count);
  const CUdeviceptr range = reserve(4 * kPiece);
  const auto handle = make(2 * kPiece);
  cuMemMap(range, 2 * kPiece, 0, handle, 0);
  unsigned long long flags = 77;
  CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
  CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0}, node = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
                none = {CU_MEM_LOCATION_TYPE_NONE, 0};
  say("get before set", cuMemGetAccess(&flags, &here, range));
  say("get before set value", static_cast<long long>(flags));
  CUmemAccessDesc access = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  say("set part", cuMemSetAccess(range, kPiece, &access, 1));
  say("set too much", cuMemSetAccess(range, 3 * kPiece, &access, 1));
  say("set size 0", cuMemSetAccess(range, 0, &access, 1));
  say("set count 0", cuMemSetAccess(range, 2 * kPiece, &access, 0));
  say("set NULL", cuMemSetAccess(range, 2 * kPiece, nullptr, 1));
  say("set of nothing", cuMemSetAccess(range + 2 * kPiece, kPiece, &access, 1));
  say("set", cuMemSetAccess(range, 2 * kPiece, &access, 1));
  say("set again", cuMemSetAccess(range, 2 * kPiece, &access, 1));
  say("get", cuMemGetAccess(&flags, &here, range + kPiece + 5));
  say("get value", static_cast<long long>(flags));
  say("get of nothing", cuMemGetAccess(&flags, &here, range + 3 * kPiece));
  say("get device 99", cuMemGetAccess(&flags, &nowhere, range));
  say("get host", cuMemGetAccess(&flags, &host, range));
  say("get node", cuMemGetAccess(&flags, &node, range));
  say("get NULL", cuMemGetAccess(nullptr, &here, range));
  say("get NULL place", cuMemGetAccess(&flags, nullptr, range));
  access.flags = static_cast<CUmemAccess_flags>(2);
  say("set flags 2", cuMemSetAccess(range, 2 * kPiece, &access, 1));
  access = {nowhere, CU_MEM_ACCESS_FLAGS_PROT_READ};
  say("set device 99", cuMemSetAccess(range, 2 * kPiece, &access, 1));
  access.location = none;
  say("set nowhere", cuMemSetAccess(range, 2 * kPiece, &access, 1));
  access.location = host;
  say("set host", cuMemSetAccess(range, 2 * kPiece, &access, 1));
  access.location = node;
  say("set node", cuMemSetAccess(range, 2 * kPiece, &access, 1));
  access = {here, CU_MEM_ACCESS_FLAGS_PROT_READ};
  say("set read", cuMemSetAccess(range, 2 * kPiece, &access, 1));
  cuMemGetAccess(&flags, &here, range);
  say("set read value", static_cast<long long>(flags));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  say("set none", cuMemSetAccess(range, 2 * kPiece, &access, 1));
  cuMemGetAccess(&flags, &here, range);
  say("set none value", static_cast<long long>(flags));
  if (count > 1) {
    const CUmemAccessDesc two[] = {{here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                                   {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READ}};
    say("set for two", cuMemSetAccess(range, 2 * kPiece, two, 2));
    cuMemGetAccess(&flags, &two[1].location, range);
    say("set for two value", static_cast<long long>(flags));
  }
  // Memory of the host.
  CUmemAllocationProp properties = on(0);
  properties.location = host;
  CUmemGenericAllocationHandle onHost = 0;
  if (cuMemCreate(&onHost, kPiece, &properties, 0) == CUDA_SUCCESS) {
    cuMemMap(range + 2 * kPiece, kPiece, 0, onHost, 0);
    access = {host, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    say("host memory: set host", cuMemSetAccess(range + 2 * kPiece, kPiece, &access, 1));
    cuMemGetAccess(&flags, &host, range + 2 * kPiece);
    say("host memory: host value", static_cast<long long>(flags));
    say("host memory: set device", allow(range + 2 * kPiece, kPiece));
    unsigned type = 0;
    cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, range + 2 * kPiece);
    say("host memory: type", type);
    int ordinal = -77;
    say("host memory: ordinal",
        cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, range + 2 * kPiece));
    say("host memory: ordinal value", ordinal);
    say("host memory: fill", cuMemsetD8_v2(range + 2 * kPiece, 1, 16));
  }
}

namespace {

// What becomes of a fill that is queued behind something when `change` happens to its memory; the device goes on by
// itself.
template <class Change>
CUresult whileQueued(Change&& change) {
  void* pinned = nullptr;
  CUstream stream = nullptr;
  cuMemHostAlloc(&pinned, 64, 0);
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  auto* word = static_cast<volatile unsigned*>(pinned);
  *word = 0;
  const CUdeviceptr at = mapped();
  allow(at, kPiece);
  cuStreamWaitValue32_v2(stream, reinterpret_cast<CUdeviceptr>(pinned), 1, 0);
  cuMemsetD8Async(at, 1, kPiece, stream);
  std::thread([word] {
    usleep(500000);
    *word = 1;
  }).detach();
  say("change", change(at));
  say("waited", *word);
  say("sync", cuStreamSynchronize(stream));
  return cuCtxSynchronize();
}

}  // namespace

// What may poison a context or crash a driver: each in a process of its own.
const std::vector<Call>& mappedCalls() {
  static const std::vector<Call> calls = {
      {"HtoD without rights",
       [] {
         int word = 1;
         return cuMemcpyHtoD_v2(mapped(), &word, 4);
       }},
      {"DtoH without rights",
       [] {
         int word = 1;
         return cuMemcpyDtoH_v2(&word, mapped(), 4);
       }},
      {"fill without rights", [] { return cuMemsetD8_v2(mapped(), 1, 16); }},
      {"fill without rights and wait",
       [] {
         const CUresult status = cuMemsetD8_v2(mapped(), 1, 16);
         return status != 0 ? status : cuCtxSynchronize();
       }},
      {"DtoD without rights",
       [] {
         CUdeviceptr d = 0;
         cuMemAlloc_v2(&d, 64);
         return cuMemcpyDtoD_v2(mapped(), d, 16);
       }},
      {"HtoD read only",
       [] {
         int word = 1;
         const CUdeviceptr at = mapped();
         allow(at, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
         return cuMemcpyHtoD_v2(at, &word, 4);
       }},
      {"DtoH read only",
       [] {
         int word = 1;
         const CUdeviceptr at = mapped();
         allow(at, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
         return cuMemcpyDtoH_v2(&word, at, 4);
       }},
      {"fill read only",
       [] {
         const CUdeviceptr at = mapped();
         allow(at, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
         const CUresult status = cuMemsetD8_v2(at, 1, 16);
         return status != 0 ? status : cuCtxSynchronize();
       }},
      {"HtoD to a range without memory",
       [] {
         int word = 1;
         return cuMemcpyHtoD_v2(reserve(kPiece), &word, 4);
       }},
      {"cuMemcpy from a range without memory",
       [] {
         CUdeviceptr d = 0;
         cuMemAlloc_v2(&d, 64);
         return cuMemcpy(d, reserve(kPiece), 16);
       }},
      {"fill of other device's memory",
       [] {
         CUcontext other;
         const CUdeviceptr at = mapped();
         allow(at, kPiece);
         cuDevicePrimaryCtxRetain(&other, 1);
         cuCtxSetCurrent(other);
         return cuMemsetD8_v2(at, 1, 16);
       }},
      {"HtoD of other device's memory",
       [] {
         int word = 1;
         CUcontext other;
         const CUdeviceptr at = mapped();
         allow(at, kPiece);
         cuDevicePrimaryCtxRetain(&other, 1);
         cuCtxSetCurrent(other);
         return cuMemcpyHtoD_v2(at, &word, 4);
       }},
      {"fill beyond the mapping",
       [] {
         const CUdeviceptr at = mapped();
         allow(at, kPiece);
         return cuMemsetD8_v2(at + kPiece - 16, 1, 32);
       }},
      {"map beyond the range",
       [] { return cuMemMap(reserve(8 * kPiece) + 7 * kPiece, 2 * kPiece, 0, make(2 * kPiece), 0); }},
      {"unmap under queued work", [] { return whileQueued([](CUdeviceptr at) { return cuMemUnmap(at, kPiece); }); }},
      {"rights taken under queued work",
       [] { return whileQueued([](CUdeviceptr at) { return allow(at, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE); }); }},
      {"writing taken under queued work",
       [] { return whileQueued([](CUdeviceptr at) { return allow(at, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_READ); }); }},
      {"memory exchanged under queued work",
       [] {
         return whileQueued([](CUdeviceptr at) {
           cuMemUnmap(at, kPiece);
           cuMemMap(at, kPiece, 0, make(kPiece), 0);
           return allow(at, kPiece);
         });
       }},
      {"cuMemFree",
       [] {
         const CUdeviceptr at = mapped();
         allow(at, kPiece);
         return cuMemFree_v2(at);
       }},
      {"cuMemFreeAsync",
       [] {
         const CUdeviceptr at = mapped();
         allow(at, kPiece);
         return cuMemFreeAsync(at, nullptr);
       }},
      {"copy after unmap",
       [] {
         int word = 1;
         const CUdeviceptr at = mapped();
         allow(at, kPiece);
         cuMemUnmap(at, kPiece);
         return cuMemcpyDtoH_v2(&word, at, 4);
       }},
      {"release 0", [] { return cuMemRelease(0); }},
      {"release wild", [] { return cuMemRelease(0x1234567890); }},
      {"release twice",
       [] {
         const auto handle = make(kPiece);
         cuMemRelease(handle);
         return cuMemRelease(handle);
       }},
      {"map released",
       [] {
         const auto handle = make(kPiece);
         cuMemRelease(handle);
         return cuMemMap(reserve(kPiece), kPiece, 0, handle, 0);
       }},
      {"map wild", [] { return cuMemMap(reserve(kPiece), kPiece, 0, 0x1234567890, 0); }},
      {"properties of wild",
       [] {
         CUmemAllocationProp read;
         return cuMemGetAllocationPropertiesFromHandle(&read, 0x1234567890);
       }},
      {"export wild",
       [] {
         int out;
         return cuMemExportToShareableHandle(&out, 0x1234567890, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
       }},
      {"import wild fabric",
       [] {
         CUmemGenericAllocationHandle handle;
         CUmemFabricHandle fabric = {};
         return cuMemImportFromShareableHandle(&handle, &fabric, CU_MEM_HANDLE_TYPE_FABRIC);
       }},
      {"pool destroy 0", [] { return cuMemPoolDestroy(nullptr); }},
      {"pool destroy wild", [] { return cuMemPoolDestroy(wild<CUmemoryPool>(0x1234567890)); }},
      {"pool trim wild", [] { return cuMemPoolTrimTo(wild<CUmemoryPool>(0x1234567890), 0); }},
      {"allocate from wild",
       [] {
         CUdeviceptr d;
         return cuMemAllocFromPoolAsync(&d, 16, wild<CUmemoryPool>(0x1234567890), nullptr);
       }},
      {"allocate from pool 0",
       [] {
         CUdeviceptr d;
         return cuMemAllocFromPoolAsync(&d, 16, nullptr, nullptr);
       }},
      {"open memory of zeros",
       [] {
         CUdeviceptr d;
         CUipcMemHandle handle = {};
         return cuIpcOpenMemHandle_v2(&d, handle, 1);
       }},
      {"open event of zeros",
       [] {
         CUevent e;
         CUipcEventHandle handle = {};
         return cuIpcOpenEventHandle(&e, handle);
       }},
      {"import pointer of zeros",
       [] {
         CUdeviceptr d;
         CUmemoryPool pool;
         CUmemPoolPtrExportData data = {};
         cuDeviceGetDefaultMemPool(&pool, 0);
         return cuMemPoolImportPointer(&d, pool, &data);
       }},
  };
  return calls;
}

}  // namespace ask
