// Shareable handles, within a process and between two processes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

#include "mapped.h"
#include "process.h"

using check::Primary;
using namespace mapped;

namespace {

// Maps the parent's memory, reads and writes it, and waits for a message before it ends.
void mapImported(process::Peer& parent) {
  const int descriptor = parent.receiveDescriptor();
  Primary primary;
  const size_t before = freeBytes();
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  CUmemAllocationProp properties = {};
  OK(cuMemGetAllocationPropertiesFromHandle(&properties, handle));
  EQUAL(properties.location.id, 1);
  EQUAL(properties.requestedHandleTypes, CU_MEM_HANDLE_TYPE_NONE);
  EQUAL(properties.allocFlags.gpuDirectRDMACapable, 1);
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 2 * kPiece, 0, 0, 0));
  OK(cuMemMap(range, 2 * kPiece, 0, handle, 0));
  allow(range, 2 * kPiece, 0);
  EQUAL(byteAt(range + 2 * kPiece - 1), 55);
  fill(range, 56, kPiece);
  // The memory counts for the process that created it.
  EQUAL(freeBytes(), before);
  // Only the creator can share it.
  int again = -1;
  EQUAL(cuMemExportToShareableHandle(&again, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);
  parent.send(1);
  parent.receive<int>();
  EQUAL(byteAt(range), 57);
  OK(cuMemUnmap(range, 2 * kPiece));
  OK(cuMemRelease(handle));
}

// A process with a single device.
void importWithoutDevice(process::Peer& parent) {
  setenv("SHOAL_SIM_DEVICES", "1", 1);
  const int descriptor = parent.receiveDescriptor();
  Primary primary;
  CUmemGenericAllocationHandle handle = 0;
  EQUAL(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        CUDA_ERROR_INVALID_DEVICE);
}

// Exports memory and waits to be killed.
void exportAndDie(process::Peer& parent) {
  Primary primary;
  const auto handle = create(kPiece, onDevice(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
  OK(cuMemMap(range, kPiece, 0, handle, 0));
  allow(range, kPiece, 0);
  fill(range, 88, kPiece);
  int descriptor = -1;
  OK(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  parent.sendDescriptor(descriptor);
  parent.receive<int>();
}

}  // namespace

ROLES({"map imported", mapImported}, {"import without device", importWithoutDevice}, {"export and die", exportAndDie});

TEST(a_descriptor_brings_the_same_memory_back) {
  Primary primary;
  const size_t before = freeBytes();
  const int descriptors = openDescriptors();
  const auto handle = create(2 * kPiece, onDevice(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  int descriptor = -1;
  OK(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CHECK(fcntl(descriptor, F_GETFD) == FD_CLOEXEC);
  CUmemGenericAllocationHandle imported = 0;
  OK(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  CHECK(imported != handle);
  EQUAL(before - freeBytes(), 2 * kPiece);
  CUmemAllocationProp properties = {};
  OK(cuMemGetAllocationPropertiesFromHandle(&properties, imported));
  EQUAL(properties.location.id, 0);
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 4 * kPiece, 0, 0, 0));
  OK(cuMemMap(range, 2 * kPiece, 0, handle, 0));
  OK(cuMemMap(range + 2 * kPiece, 2 * kPiece, 0, imported, 0));
  mapped::allow(range, 4 * kPiece, 0);
  fill(range, 77, 2 * kPiece);
  EQUAL(byteAt(range + 3 * kPiece), 77);
  OK(cuMemRelease(handle));
  OK(cuMemUnmap(range, 2 * kPiece));
  EQUAL(byteAt(range + 3 * kPiece), 77);
  EQUAL(before - freeBytes(), 2 * kPiece);
  OK(cuMemRelease(imported));
  OK(cuMemUnmap(range + 2 * kPiece, 2 * kPiece));
  OK(cuMemAddressFree(range, 4 * kPiece));
  EQUAL(freeBytes(), before);
  EQUAL(openDescriptors(), descriptors);
}

TEST(wrong_handles_are_refused) {
  Primary primary;
  CUmemGenericAllocationHandle imported = 0;
  auto import = [&](int descriptor) {
    return cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  };
  EQUAL(import(-1), CUDA_ERROR_UNKNOWN);
  EQUAL(import(987), CUDA_ERROR_UNKNOWN);
  const int plain = open("/proc/self/exe", O_RDONLY);
  EQUAL(import(plain), CUDA_ERROR_UNKNOWN);
  close(plain);
  EQUAL(import(plain), CUDA_ERROR_UNKNOWN);
  int ends[2];
  CHECK(pipe(ends) == 0);
  EQUAL(import(ends[0]), CUDA_ERROR_UNKNOWN);
  close(ends[0]);
  close(ends[1]);
  // Files without a label, first unsealed and then sealed.
  const int empty = memfd_create("other", MFD_ALLOW_SEALING);
  CHECK(ftruncate(empty, 3 * kPiece) == 0);
  EQUAL(import(empty), CUDA_ERROR_UNKNOWN);
  CHECK(fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  EQUAL(import(empty), CUDA_ERROR_UNKNOWN);
  close(empty);
  EQUAL(cuMemImportFromShareableHandle(&imported, nullptr, CU_MEM_HANDLE_TYPE_FABRIC), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuMemImportFromShareableHandle(&imported, nullptr, CU_MEM_HANDLE_TYPE_WIN32), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuMemImportFromShareableHandle(&imported, nullptr, CU_MEM_HANDLE_TYPE_NONE), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemImportFromShareableHandle(nullptr, nullptr, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        CUDA_ERROR_INVALID_VALUE);
  const auto own = create(kPiece, onDevice(0)),
             shareable = create(kPiece, onDevice(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  int descriptor = -1;
  EQUAL(cuMemExportToShareableHandle(&descriptor, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemExportToShareableHandle(&descriptor, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1),
        CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemExportToShareableHandle(&descriptor, shareable, CU_MEM_HANDLE_TYPE_NONE, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemExportToShareableHandle(&descriptor, shareable, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemExportToShareableHandle(nullptr, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemExportToShareableHandle(&descriptor, 0x1234567890, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);
  EQUAL(descriptor, -1);
  OK(cuMemRelease(own));
  OK(cuMemRelease(shareable));
}

TEST(another_process_maps_the_memory) {
  for (const bool isKilled : {false, true}) {
    process::Child child("map imported");
    Primary primary;
    auto properties = onDevice(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    properties.allocFlags.gpuDirectRDMACapable = 1;
    const auto handle = create(2 * kPiece, properties);
    CUdeviceptr range = 0;
    OK(cuMemAddressReserve(&range, 2 * kPiece, 0, 0, 0));
    OK(cuMemMap(range, 2 * kPiece, 0, handle, 0));
    allow(range, 2 * kPiece, 0);
    fill(range, 55, 2 * kPiece);
    int descriptor = -1;
    OK(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    child.sendDescriptor(descriptor);
    close(descriptor);
    child.receive<int>();
    EQUAL(byteAt(range), 56);
    EQUAL(byteAt(range + kPiece), 55);
    fill(range, 57, 1);
    if (isKilled) {
      child.kill();
    } else {
      child.send(1);
      EQUAL(child.wait(), 0);
    }
    EQUAL(byteAt(range), 57);
    EQUAL(byteAt(range + 1), 56);
    OK(cuMemUnmap(range, 2 * kPiece));
    OK(cuMemAddressFree(range, 2 * kPiece));
    OK(cuMemRelease(handle));
  }
}

TEST(a_process_without_the_device_cannot_import) {
  process::Child child("import without device");
  Primary primary;
  const auto handle = create(kPiece, onDevice(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  int descriptor = -1;
  OK(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  child.sendDescriptor(descriptor);
  close(descriptor);
  EQUAL(child.wait(), 0);
  OK(cuMemRelease(handle));
}

TEST(memory_outlives_the_process_that_exported_it) {
  Primary primary;
  CUmemGenericAllocationHandle handle = 0;
  {
    process::Child child("export and die");
    const int descriptor = child.receiveDescriptor();
    child.kill();
    OK(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(descriptor);
  }
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
  OK(cuMemMap(range, kPiece, 0, handle, 0));
  OK(cuMemRelease(handle));
  allow(range, kPiece, 0);
  EQUAL(byteAt(range + kPiece - 1), 88);
  OK(cuMemUnmap(range, kPiece));
  OK(cuMemAddressFree(range, kPiece));
}
