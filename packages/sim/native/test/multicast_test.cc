// Multicast: one write reaches the memory of a whole team of devices, within a process and across processes.
#include <unistd.h>

#include <iterator>

#include "mapped.h"
#include "process.h"

using check::Primary;
using namespace mapped;

namespace {

constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemGenericAllocationHandle makeObject(unsigned devices, size_t size, unsigned long long types = 0) {
  const CUmulticastObjectProp properties = {devices, size, types, 0};
  CUmemGenericAllocationHandle object = 0;
  OK(cuMulticastCreate(&object, &properties));
  return object;
}

// Physical memory, mapped at its own address.
struct Memory {
  Memory(int device, size_t size, unsigned types = 0) : size(size), handle(create(size, onDevice(device, types))) {
    OK(cuMemAddressReserve(&at, size, 0, 0, 0));
    OK(cuMemMap(at, size, 0, handle, 0));
    for (int each = 0; each < 2; ++each) allow(at, size, each);
    fill(at, 0, size);
  }
  void drop() {
    OK(cuMemUnmap(at, size));
    OK(cuMemAddressFree(at, size));
    OK(cuMemRelease(handle));
  }
  size_t size;
  CUmemGenericAllocationHandle handle;
  CUdeviceptr at = 0;
};

CUdeviceptr map(CUmemGenericAllocationHandle object, size_t size) {
  CUdeviceptr at = 0;
  OK(cuMemAddressReserve(&at, size, 0, 0, 0));
  OK(cuMemMap(at, size, 0, object, 0));
  return at;
}

void unmap(CUdeviceptr at, size_t size) {
  OK(cuMemUnmap(at, size));
  OK(cuMemAddressFree(at, size));
}

// A member of a team of two processes: adds the second device, binds its memory, and checks the writes.
void joinTeam(process::Peer& parent) {
  const int descriptor = parent.receiveDescriptor();
  Primary primary(1);
  CUmemGenericAllocationHandle object = 0;
  OK(cuMemImportFromShareableHandle(&object, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)), kDescriptor));
  close(descriptor);
  Memory memory(1, kPiece, kDescriptor), unshareable(1, kPiece);
  usleep(20000);  // the parent waits for the team in the meantime
  OK(cuMulticastAddDevice(object, 1));
  EQUAL(cuMulticastBindMem(object, 0, unshareable.handle, 0, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMulticastBindMem(object, 0, memory.handle, 0, kPiece, 0));
  parent.send(1);
  parent.receive<int>();
  EQUAL(byteAt(memory.at + 12345), 31);
  const CUdeviceptr own = map(object, kPiece);
  allow(own, kPiece, 1);
  fill(own + 100, 32, 100);
  parent.send(1);
  parent.receive<int>();
}

}  // namespace

ROLES({"join team", joinTeam});

TEST(a_write_reaches_every_bound_memory) {
  Primary primary;
  const size_t before = freeBytes();
  const auto object = makeObject(2, 2 * kPiece);
  for (int device = 0; device < 2; ++device) OK(cuMulticastAddDevice(object, device));
  Memory first(0, 2 * kPiece), second(1, 2 * kPiece);
  OK(cuMulticastBindMem(object, 0, first.handle, 0, 2 * kPiece, 0));
  // Bind the halves of the second device's memory in reverse order, one of them by its address.
  OK(cuMulticastBindMem(object, 0, second.handle, kPiece, kPiece, 0));
  OK(cuMulticastBindAddr(object, kPiece, second.at, kPiece, 0));
  const CUdeviceptr all = map(object, 2 * kPiece);
  EQUAL(cuMemsetD8_v2(all, 1, 16), CUDA_ERROR_INVALID_VALUE);
  allow(all, 2 * kPiece, 0);
  fill(all, 5, 16);
  EQUAL(byteAt(first.at + 15), 5);
  EQUAL(byteAt(second.at + kPiece + 15), 5);
  EQUAL(byteAt(first.at + 16), 0);
  std::vector<unsigned char> bytes(2 * kPiece);
  for (size_t index = 0; index < bytes.size(); ++index) bytes[index] = static_cast<unsigned char>(index * 7 / 3);
  OK(cuMemcpyHtoD_v2(all, bytes.data(), bytes.size()));
  std::vector<unsigned char> back(2 * kPiece);
  OK(cuMemcpyDtoH_v2(back.data(), first.at, back.size()));
  CHECK(back == bytes);
  OK(cuMemcpyDtoH_v2(back.data(), second.at, back.size()));
  CHECK(memcmp(&back[kPiece], bytes.data(), kPiece) == 0 && memcmp(back.data(), &bytes[kPiece], kPiece) == 0);
  // Other kinds of writes.
  CUstream stream = check::stream();
  OK(cuMemsetD32Async(all + 64, 0xabcdef01, 3, stream));
  OK(cuStreamWriteValue32_v2(stream, all + 128, 77, 0));
  OK(cuMemsetD2D8Async(all + 256, 32, 9, 8, 4, stream));
  OK(cuMemcpyDtoDAsync_v2(all + kPiece, first.at, 512, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemcpyDtoH_v2(back.data(), second.at, back.size()));
  const unsigned char* lower = &back[kPiece];
  unsigned word = 0;
  memcpy(&word, lower + 72, 4);
  EQUAL(word, 0xabcdef01u);
  EQUAL(lower[76], bytes[76]);
  EQUAL(lower[128], 77);
  EQUAL(lower[256 + 32 * 3 + 7], 9);
  EQUAL(lower[256 + 8], bytes[256 + 8]);
  CHECK(memcmp(back.data(), lower, 512) == 0);
  // A multicast address cannot be read.
  EQUAL(cuMemcpyDtoH_v2(back.data(), all, 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuStreamWaitValue32_v2(stream, all, 0, CU_STREAM_WAIT_VALUE_GEQ), CUDA_ERROR_INVALID_VALUE);
  // Unbound memory does not change.
  OK(cuMulticastUnbind(object, 1, 0, kPiece));
  fill(all, 99, 1);
  EQUAL(byteAt(first.at), 99);
  EQUAL(byteAt(second.at + kPiece), bytes[0]);
  unmap(all, 2 * kPiece);
  first.drop();
  second.drop();
  EQUAL(before - freeBytes(), 2 * kPiece);  // still bound
  OK(cuMemRelease(object));
  EQUAL(freeBytes(), before);
}

TEST(memory_is_bound_to_a_part_of_an_object) {
  Primary primary;
  const auto object = makeObject(1, 4 * kPiece);
  OK(cuMulticastAddDevice(object, 0));
  Memory memory(0, kPiece);
  OK(cuMulticastBindMem(object, 2 * kPiece, memory.handle, 0, kPiece, 0));
  const CUdeviceptr all = map(object, 4 * kPiece);
  allow(all, 4 * kPiece, 0);
  fill(all + 2 * kPiece - 8, 3, 16);
  EQUAL(byteAt(memory.at + 7), 3);
  EQUAL(byteAt(memory.at + 8), 0);
  CUmemGenericAllocationHandle retained = 0;
  OK(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(all)));
  CHECK(retained == object);
  OK(cuMemRelease(retained));
  unmap(all, 4 * kPiece);
  // Like memory, an object can only be mapped as a whole.
  EQUAL(cuMemMap(all, 2 * kPiece, kPiece, object, 0), CUDA_ERROR_NOT_SUPPORTED);
  memory.drop();
  OK(cuMemRelease(object));
}

TEST(memory_of_a_pool_is_bound_by_its_address) {
  Primary primary;
  CUstream stream = check::stream();
  const auto object = makeObject(1, kPiece);
  OK(cuMulticastAddDevice(object, 0));
  CUdeviceptr pooled = 0;
  OK(cuMemAllocAsync(&pooled, kPiece, stream));
  OK(cuStreamSynchronize(stream));
  fill(pooled, 0, kPiece);
  OK(cuMulticastBindAddr(object, 0, pooled, kPiece, 0));
  const CUdeviceptr all = map(object, kPiece);
  allow(all, kPiece, 0);
  fill(all + 5, 8, 1);
  EQUAL(byteAt(pooled + 5), 8);
  const CUdeviceptr plain = check::memory(4 * kPiece);
  EQUAL(cuMulticastBindAddr(object, 0, plain, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree_v2(plain));
  unmap(all, kPiece);
  OK(cuMemRelease(object));
  OK(cuMemFreeAsync(pooled, stream));
  OK(cuStreamSynchronize(stream));
}

TEST(wrong_objects_are_refused) {
  Primary primary;
  CUmemGenericAllocationHandle object = 0;
  size_t granularity = 0;
  auto refused = [&](CUresult want, const CUmulticastObjectProp& properties) {
    EQUAL(cuMulticastCreate(&object, &properties), want);
  };
  refused(CUDA_ERROR_INVALID_VALUE, {0, kPiece, 0, 0});
  refused(CUDA_ERROR_INVALID_VALUE, {3, kPiece, 0, 0});
  refused(CUDA_ERROR_INVALID_VALUE, {2, 0, 0, 0});
  refused(CUDA_ERROR_INVALID_VALUE, {2, kPiece + 4096, 0, 0});
  refused(CUDA_ERROR_INVALID_VALUE, {2, kPiece, 0, 1});
  refused(CUDA_ERROR_INVALID_VALUE, {2, kPiece, 128, 0});
  refused(CUDA_ERROR_INVALID_VALUE, {2, kPiece, CU_MEM_HANDLE_TYPE_WIN32, 0});
  EQUAL(cuMulticastCreate(&object, nullptr), CUDA_ERROR_INVALID_VALUE);
  const CUmulticastObjectProp properties = {2, kPiece, 0, 0};
  EQUAL(cuMulticastCreate(nullptr, &properties), CUDA_ERROR_INVALID_VALUE);
  for (auto option : {CU_MULTICAST_GRANULARITY_MINIMUM, CU_MULTICAST_GRANULARITY_RECOMMENDED}) {
    OK(cuMulticastGetGranularity(&granularity, &properties, option));
    EQUAL(granularity, kPiece);
  }
  EQUAL(cuMulticastGetGranularity(&granularity, &properties, static_cast<CUmulticastGranularity_flags>(2)),
        CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastGetGranularity(nullptr, &properties, CU_MULTICAST_GRANULARITY_MINIMUM), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastGetGranularity(&granularity, nullptr, CU_MULTICAST_GRANULARITY_MINIMUM), CUDA_ERROR_INVALID_VALUE);
  int isSupported = 0;
  OK(cuDeviceGetAttribute(&isSupported, 132, 0));
  EQUAL(isSupported, 1);
}

TEST(wrong_bindings_are_refused) {
  Primary primary;
  const auto object = makeObject(2, 2 * kPiece);
  Memory memory(0, 2 * kPiece);
  const size_t far = 2 * kPiece;
  EQUAL(cuMulticastAddDevice(object, 9), CUDA_ERROR_INVALID_DEVICE);
  EQUAL(cuMulticastAddDevice(memory.handle, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMulticastAddDevice(object, 0));
  EQUAL(cuMulticastAddDevice(object, 0), CUDA_ERROR_INVALID_VALUE);
  // The team is not complete, and no other process knows the object.
  EQUAL(cuMulticastBindMem(object, 0, memory.handle, 0, kPiece, 0), CUDA_ERROR_ILLEGAL_STATE);
  EQUAL(cuMulticastBindAddr(object, 0, memory.at, kPiece, 0), CUDA_ERROR_ILLEGAL_STATE);
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 2 * kPiece, 0, 0, 0));
  EQUAL(cuMemMap(range, 2 * kPiece, 0, object, 0), CUDA_ERROR_ILLEGAL_STATE);
  OK(cuMemAddressFree(range, 2 * kPiece));
  OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
  OK(cuMulticastAddDevice(object, 1));
  EQUAL(cuMulticastBindMem(object, kPiece, memory.handle, 0, 2 * kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(object, far, memory.handle, 0, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(object, 0, memory.handle, kPiece, 2 * kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(object, 4096, memory.handle, 0, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(object, 0, memory.handle, 4096, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(object, 0, memory.handle, 0, 4096, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(object, 0, memory.handle, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(object, 0, memory.handle, 0, kPiece, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(object, 0, object, 0, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(memory.handle, 0, memory.handle, 0, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(object, 0, 0x1234567890, 0, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindAddr(object, 0, memory.at + 4096, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindAddr(object, 0, memory.at + kPiece, 2 * kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindAddr(object, 0, 4096, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  CUmemAllocationProp onHost = onDevice(0);
  onHost.location.type = CU_MEM_LOCATION_TYPE_HOST;
  const auto hostMemory = create(kPiece, onHost);
  EQUAL(cuMulticastBindMem(object, 0, hostMemory, 0, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemRelease(hostMemory));
  OK(cuMulticastBindMem(object, 0, memory.handle, 0, kPiece, 0));
  EQUAL(cuMulticastBindMem(object, 0, memory.handle, kPiece, kPiece, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastUnbind(object, 0, kPiece, kPiece), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastUnbind(object, 1, 0, kPiece), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastUnbind(object, 9, 0, kPiece), CUDA_ERROR_INVALID_DEVICE);
  EQUAL(cuMulticastUnbind(object, 0, 0, 4096), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastUnbind(memory.handle, 0, 0, kPiece), CUDA_ERROR_INVALID_VALUE);
  OK(cuMulticastUnbind(object, 0, 0, kPiece));
  EQUAL(cuMulticastUnbind(object, 0, 0, kPiece), CUDA_ERROR_INVALID_VALUE);
  // Memory of a device outside the team.
  const auto small = makeObject(1, kPiece);
  OK(cuMulticastAddDevice(small, 1));
  EQUAL(cuMulticastAddDevice(small, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMulticastBindMem(small, 0, memory.handle, 0, kPiece, 0), CUDA_ERROR_INVALID_DEVICE);
  OK(cuMemMap(range, kPiece, 0, small, 0));
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EQUAL(cuMemSetAccess(range, kPiece, &access, 1), CUDA_ERROR_INVALID_DEVICE);
  CUmemAllocationProp properties;
  EQUAL(cuMemGetAllocationPropertiesFromHandle(&properties, small), CUDA_ERROR_INVALID_VALUE);
  unmap(range, kPiece);
  OK(cuMemRelease(small));
  OK(cuMemRelease(object));
  memory.drop();
}

TEST(two_processes_make_one_team) {
  for (const bool isKilled : {false, true}) {
    process::Child child("join team");
    Primary primary;
    const int descriptors = openDescriptors();
    const auto object = makeObject(2, kPiece, kDescriptor);
    OK(cuMulticastAddDevice(object, 0));
    int descriptor = -1;
    OK(cuMemExportToShareableHandle(&descriptor, object, kDescriptor, 0));
    child.sendDescriptor(descriptor);
    close(descriptor);
    Memory memory(0, kPiece, kDescriptor);
    // This waits until the other process has added its device.
    OK(cuMulticastBindMem(object, 0, memory.handle, 0, kPiece, 0));
    child.receive<int>();
    const CUdeviceptr all = map(object, kPiece);
    allow(all, kPiece, 0);
    fill(all, 31, kPiece);
    EQUAL(byteAt(memory.at), 31);
    child.send(1);
    child.receive<int>();
    EQUAL(byteAt(memory.at + 99), 31);
    EQUAL(byteAt(memory.at + 100), 32);
    EQUAL(byteAt(memory.at + 199), 32);
    if (isKilled) {
      child.kill();
    } else {
      child.send(1);
      EQUAL(child.wait(), 0);
    }
    // The rest of the team continues, and the range of the dead process can be bound again.
    usleep(150000);
    fill(all, 33, kPiece);
    EQUAL(byteAt(memory.at + 150), 33);
    Memory other(1, kPiece, kDescriptor);
    OK(cuMulticastBindMem(object, 0, other.handle, 0, kPiece, 0));
    fill(all, 34, kPiece);
    EQUAL(byteAt(other.at), 34);
    other.drop();
    unmap(all, kPiece);
    memory.drop();
    OK(cuMemRelease(object));
    CHECK(openDescriptors() <= descriptors + 2);
  }
}
