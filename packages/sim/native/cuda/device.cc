// Devices and their attributes.
#include "core/device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "core/context.h"
#include "core/entry.h"
#include "core/multiprocessors.h"

using namespace shoal;

namespace {

constexpr char kName[] = "Shoal Software Device";
constexpr int kPciBusOfFirst = 0x10;

struct Attribute {
  int code;
  int value;
};

// Sorted by code. The device reports compute capability 9.0 and the limits of such hardware, so that programs that size
// their work by these limits take sensible paths. Features that it does not support are 0.
constexpr Attribute kAttributes[] = {
    {1, 1024},         // threads per block
    {2, 1024},         // block x
    {3, 1024},         // block y
    {4, 64},           // block z
    {5, 2147483647},   // grid x
    {6, 65535},        // grid y
    {7, 65535},        // grid z
    {8, 49152},        // shared memory per block, bytes
    {9, 65536},        // constant memory, bytes
    {10, 32},          // warp size
    {11, 2147483647},  // largest pitch of a copy, bytes
    {12, 65536},       // registers per block
    {13, 1000000},     // clock, kHz
    {14, 512},         // texture alignment
    {15, 1},           // copies overlap other work
    {16, -1},          // set by SHOAL_SIM_MULTIPROCESSORS
    {17, 0},           // run-time limit on kernels
    {18, 0},           // integrated
    {19, 1},           // maps host memory
    {20, 0},           // compute mode: default
    {21, 131072},      // 21 to 29: texture sizes
    {22, 131072},     {23, 65536}, {24, 16384},   {25, 16384}, {26, 16384},  {27, 32768},
    {28, 32768},      {29, 2048},  {30, 512},  // surface alignment
    {31, 1},                                   // concurrent kernels
    {32, 0},                                   // ECC
    {33, -1},                                  // PCI bus, by device
    {34, 0},                                   // PCI device
    {35, 0},                                   // TCC driver
    {36, 1000000},                             // memory clock, kHz
    {37, 64},                                  // memory bus, bits
    {38, 1 << 20},                             // L2 cache, bytes
    {39, 2048},                                // threads per multiprocessor
    {40, 2},                                   // copy engines
    {41, 1},                                   // unified addressing
    {42, 32768},      {43, 2048},  {44, 1},       {45, 32768}, {46, 32768},  {47, 8192},
    {48, 8192},       {49, 32768}, {50, 0},  // PCI domain
    {51, 32},                                // texture pitch alignment
    {52, 32768},      {53, 32768}, {54, 2046},    {55, 32768}, {56, 131072}, {57, 65536},
    {58, 16384},      {59, 16384}, {60, 16384},   {61, 32768}, {62, 2048},   {63, 32768},
    {64, 32768},      {65, 2048},  {66, 32768},   {67, 32768}, {68, 2046},   {69, 268435456},
    {70, 131072},     {71, 65000}, {72, 2097120}, {73, 32768}, {74, 32768},  {75, 9},  // compute capability, major
    {76, 0},                                                                           // compute capability, minor
    {77, 32768},      {78, 1},                                                         // stream priorities
    {79, 1},                                                                           // global L1 cache
    {80, 1},                                                                           // local L1 cache
    {81, 233472},                             // shared memory per multiprocessor, bytes
    {82, 65536},                              // registers per multiprocessor
    {83, 1},                                  // managed memory
    {84, 0},                                  // multi-GPU board
    {85, -1},                                 // board group, by device
    {86, 1},                                  // native atomics between device and host
    {87, 2},                                  // single to double precision performance
    {88, 0},                                  // coherent access to pageable memory
    {89, 1},                                  // concurrent managed access
    {90, 0},                                  // compute preemption
    {91, 1},                                  // host pointer usable for registered memory
    {92, 0},                                  // 92 to 94: the first stream memory operations, retired
    {93, 0},          {94, 0},     {95, 1},   // cooperative launch
    {96, 0},                                  // cooperative launch on several devices
    {97, 232448},                             // shared memory per block with opt-in, bytes
    {98, 0},                                  // flush of remote writes
    {99, 1},                                  // host memory registration
    {100, 0},                                 // pageable access through host page tables
    {101, 1},                                 // host reads managed memory on the device directly
    {102, 1},                                 // virtual memory management
    {103, 1},                                 // POSIX file descriptor handles
    {104, 0},                                 // Win32 handles
    {105, 0},                                 // Win32 KMT handles
    {106, 32},                                // blocks per multiprocessor
    {107, 0},                                 // compressible memory
    {108, 0},                                 // persisting L2 cache, bytes
    {109, 0},                                 // access policy window, bytes
    {110, 1},                                 // RDMA with virtual memory management
    {111, 1024},                              // shared memory per block that the system reserves, bytes
    {112, 1},                                 // sparse arrays
    {113, 1},                                 // read-only host registration
    {114, 0},                                 // timeline semaphores
    {115, 1},                                 // stream-ordered allocation
    {116, 0},                                 // RDMA
    {117, 0},         {118, 0},    {119, 1},  // handle types of memory pools: POSIX file descriptors
    {120, 1},                                 // cluster launch
    {121, 1},                                 // deferred mapping of arrays
    {122, 1},                                 // 64-bit stream memory operations
    {123, 1},                                 // waiting with NOR
    {124, 0},                                 // dma-buf
    {125, 1},                                 // IPC events
    {126, 4},                                 // memory synchronization domains
    {127, 0},                                 // tensor maps
    {128, -1},                                // fabric handles, if enabled
    {129, 1},                                 // unified function pointers
    {130, 0},                                 // NUMA configuration
    {131, -1},                                // NUMA node of the device: none
    {132, 1},                                 // multicast
    {133, 0},                                 // MPS
    {134, -1},                                // NUMA node of the host: unknown
    {135, 0},                                 // D3D12 CIG
    {136, 0},         {137, 0},               // decompression
    {138, 0},                                 // Vulkan CIG
    {139, 0},         {140, 0},               // PCI identification
    {141, 1},         {142, 1},               // virtual memory management and pools on NUMA nodes of the host
    {143, 0},                                 // between hosts
    {144, 1},         {145, 1},               // pools and virtual memory management on the host
    {146, 0},                                 // dma-buf of host memory
    {147, 0},                                 // host atomics are not partial
};

CUresult onDevice(CUdevice ordinal, const void* out, CUresult (*body)(Device&, void*), void* data) {
  return initialised([&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (const CUresult status = findDevice(ordinal, device)) return status;
    return body(*device, data);
  });
}

// The UUID is equal in every process and on every machine, because nothing identifies a software device.
CUresult identify(CUuuid* uuid, CUdevice ordinal) {
  return onDevice(
      ordinal, uuid,
      [](Device& device, void* out) {
        static constexpr unsigned char prefix[15] = {'s', 'h', 'o', 'a', 'l', '-', 's', 'i',
                                                     'm', '-', 'd', 'e', 'v', 0,   0};
        memcpy(out, prefix, sizeof prefix);
        static_cast<char*>(out)[15] = static_cast<char>(device.ordinal);
        return CUDA_SUCCESS;
      },
      uuid);
}

int busOf(const Device& device) { return kPciBusOfFirst + device.ordinal; }

}  // namespace

CUresult cuInit(unsigned int Flags) {
  return anywhere([&] { return Flags != 0 ? CUDA_ERROR_INVALID_VALUE : initialise(); });
}

CUresult cuDriverGetVersion(int* driverVersion) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return onDevice(
      ordinal, device,
      [](Device& found, void* out) {
        *static_cast<CUdevice*>(out) = found.ordinal;
        return CUDA_SUCCESS;
      },
      device);
}

CUresult cuDeviceGetCount(int* count) {
  return initialised([&] {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(state().devices.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  if (len <= 0) return state().initialised ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
  const CUresult status = onDevice(dev, name, [](Device&, void*) { return CUDA_SUCCESS; }, nullptr);
  if (status == CUDA_SUCCESS) snprintf(name, static_cast<size_t>(len), "%s", kName);
  return status;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) { return identify(uuid, dev); }
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) { return identify(uuid, dev); }

// A LUID exists only on Windows. The real driver answers the same on other systems.
CUresult cuDeviceGetLuid(char* luid, unsigned int* deviceNodeMask, CUdevice dev) {
  const CUresult status = onDevice(dev, luid, [](Device&, void*) { return CUDA_SUCCESS; }, nullptr);
  if (status != CUDA_SUCCESS) return status;
  return deviceNodeMask == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  return onDevice(
      dev, bytes,
      [](Device& device, void* out) {
        *static_cast<size_t*>(out) = device.arena.capacity();
        return CUDA_SUCCESS;
      },
      bytes);
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  return initialised([&]() -> CUresult {
    if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (const CUresult status = findDevice(dev, device)) return status;
    auto found = std::lower_bound(std::begin(kAttributes), std::end(kAttributes), attrib,
                                  [](const Attribute& attribute, int code) { return attribute.code < code; });
    if (found == std::end(kAttributes) || found->code != attrib) return CUDA_ERROR_INVALID_VALUE;
    *pi = found->value;
    if (attrib == 16) *pi = static_cast<int>(multiprocessorCount());
    if (attrib == 33) *pi = busOf(*device);
    if (attrib == 85) *pi = device->ordinal;
    if (attrib == 128) *pi = state().hasFabric ? 1 : 0;
    if (attrib == 119 && state().hasFabric) *pi |= CU_MEM_HANDLE_TYPE_FABRIC;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  if (minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = cuDeviceGetAttribute(major, 75, dev);
  return status != CUDA_SUCCESS ? status : cuDeviceGetAttribute(minor, 76, dev);
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  return initialised([&]() -> CUresult {
    Device* device = nullptr;
    if (const CUresult status = findDevice(dev, device)) return status;
    if (pciBusId == nullptr || len < 13) return CUDA_ERROR_INVALID_VALUE;
    snprintf(pciBusId, static_cast<size_t>(len), "%04X:%02X:%02X.0", 0u, static_cast<unsigned>(busOf(*device)), 0u);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  return initialised([&]() -> CUresult {
    if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // [domain]:[bus]:[device].[function]; domain and function are optional
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    int used = 0;
    const int length = static_cast<int>(strlen(pciBusId));
    const bool isFull =
        sscanf(pciBusId, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &used) == 4 && used == length;
    const bool noFunction =
        !isFull && sscanf(pciBusId, "%x:%x:%x%n", &domain, &bus, &slot, &used) == 3 && used == length;
    if (!isFull && !noFunction) {
      domain = function = 0;
      if (sscanf(pciBusId, "%x:%x.%x%n", &bus, &slot, &function, &used) != 3 || used != length)
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (auto& device : state().devices) {
      if (domain == 0 && slot == 0 && function == 0 && bus == static_cast<unsigned>(busOf(*device))) {
        *dev = device->ordinal;
        return CUDA_SUCCESS;
      }
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  return initialised([&]() -> CUresult {
    if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Device *device = nullptr, *peer = nullptr;
    if (const CUresult status = findDevice(dev, device)) return status;
    if (const CUresult status = findDevice(peerDev, peer)) return status;
    *canAccessPeer = device == peer ? 0 : 1;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice) {
  return initialised([&]() -> CUresult {
    Device *from = nullptr, *to = nullptr;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = findDevice(srcDevice, from)) return status;
    if (const CUresult status = findDevice(dstDevice, to)) return status;
    if (from == to) return CUDA_ERROR_INVALID_DEVICE;
    switch (attrib) {
      case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: *value = 0; return CUDA_SUCCESS;
      case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED: *value = 1; return CUDA_SUCCESS;
      case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *value = 1; return CUDA_SUCCESS;
      case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = 0; return CUDA_SUCCESS;
      case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED: *value = 0; return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

// No affinity type is supported, known or unknown.
CUresult cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType, CUdevice dev) {
  return onDevice(
      dev, pi,
      [](Device&, void* out) {
        *static_cast<int*>(out) = 0;
        return CUDA_SUCCESS;
      },
      pi);
}
