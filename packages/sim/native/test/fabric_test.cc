// Fabric handles: shareable handles of plain bytes. They must be enabled, because on hardware they need a configured
// system.
#include <iterator>

#include "mapped.h"
#include "process.h"

using check::Primary;
using namespace mapped;

namespace {

// cuInit reads this, in the parent and in the children.
const bool isAskedFor = setenv("SHOAL_SIM_FABRIC", "1", 1) == 0;

CUmemGenericAllocationHandle import(const CUmemFabricHandle& fabric) {
  CUmemGenericAllocationHandle handle = 0;
  auto copy = fabric;
  OK(cuMemImportFromShareableHandle(&handle, &copy, CU_MEM_HANDLE_TYPE_FABRIC));
  return handle;
}

// Maps the memory that the bytes name, and returns its content.
void mapFabric(process::Peer& parent) {
  const auto fabric = parent.receive<CUmemFabricHandle>();
  Primary primary;
  const auto handle = import(fabric);
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
  OK(cuMemMap(range, kPiece, 0, handle, 0));
  allow(range, kPiece, 0);
  parent.send(byteAt(range + 77));
  fill(range, 12, 1);
  OK(cuMemUnmap(range, kPiece));
  OK(cuMemRelease(handle));
  parent.send(1);
}

// Exports memory to the parent, until the process is killed.
void exportFabric(process::Peer& parent) {
  Primary primary;
  const auto handle = create(kPiece, onDevice(0, CU_MEM_HANDLE_TYPE_FABRIC));
  CUmemFabricHandle fabric;
  OK(cuMemExportToShareableHandle(&fabric, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  parent.send(fabric);
  parent.receive<int>();
}

}  // namespace

ROLES({"map fabric", mapFabric}, {"export fabric", exportFabric});

TEST(the_device_says_so) {
  Primary primary;
  int value = 0;
  CHECK(isAskedFor);
  OK(cuDeviceGetAttribute(&value, 128, 0));
  EQUAL(value, 1);
  OK(cuDeviceGetAttribute(&value, 119, 0));
  EQUAL(value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC);
}

TEST(bytes_bring_the_same_memory_to_another_process) {
  process::Child child("map fabric");
  Primary primary;
  const auto handle = create(kPiece, onDevice(0, CU_MEM_HANDLE_TYPE_FABRIC));
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
  OK(cuMemMap(range, kPiece, 0, handle, 0));
  allow(range, kPiece, 0);
  fill(range, 11, kPiece);
  CUmemFabricHandle fabric;
  OK(cuMemExportToShareableHandle(&fabric, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  child.send(fabric);
  EQUAL(child.receive<unsigned char>(), 11);
  child.receive<int>();
  EQUAL(child.wait(), 0);
  EQUAL(byteAt(range), 12);
  // It also works within the process.
  const auto imported = import(fabric);
  CHECK(imported != handle);
  OK(cuMemRelease(imported));
  OK(cuMemUnmap(range, kPiece));
  OK(cuMemAddressFree(range, kPiece));
  OK(cuMemRelease(handle));
  CUmemGenericAllocationHandle gone = 0;
  EQUAL(cuMemImportFromShareableHandle(&gone, &fabric, CU_MEM_HANDLE_TYPE_FABRIC), CUDA_ERROR_INVALID_VALUE);
}

TEST(wrong_bytes_are_refused) {
  Primary primary;
  CUmemFabricHandle fabric = {};
  CUmemGenericAllocationHandle handle = 0;
  auto import = [&](void* from) { return cuMemImportFromShareableHandle(&handle, from, CU_MEM_HANDLE_TYPE_FABRIC); };
  EQUAL(import(&fabric), CUDA_ERROR_INVALID_VALUE);
  EQUAL(import(nullptr), CUDA_ERROR_INVALID_VALUE);
  process::Child child("export fabric");
  fabric = child.receive<CUmemFabricHandle>();
  OK(import(&fabric));
  OK(cuMemRelease(handle));
  CUmemFabricHandle cut = fabric;
  memset(&cut.data[20], 0, sizeof cut.data - 20);
  EQUAL(import(&cut), CUDA_ERROR_INVALID_VALUE);
  child.kill();
  EQUAL(import(&fabric), CUDA_ERROR_INVALID_VALUE);
}

TEST(pools_and_multicast_objects_have_fabric_handles_too) {
  Primary primary;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  CUmemoryPool pool = nullptr, imported = nullptr;
  OK(cuMemPoolCreate(&pool, &properties));
  CUmemFabricHandle fabric;
  OK(cuMemPoolExportToShareableHandle(&fabric, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  OK(cuMemPoolImportFromShareableHandle(&imported, &fabric, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  CHECK(imported != pool);
  OK(cuMemPoolDestroy(imported));
  OK(cuMemPoolDestroy(pool));
  EQUAL(cuMemPoolImportFromShareableHandle(&imported, &fabric, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_INVALID_VALUE);
  const CUmulticastObjectProp team = {1, kPiece, CU_MEM_HANDLE_TYPE_FABRIC, 0};
  CUmemGenericAllocationHandle object = 0;
  OK(cuMulticastCreate(&object, &team));
  OK(cuMemExportToShareableHandle(&fabric, object, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  const auto again = ::import(fabric);
  OK(cuMulticastAddDevice(again, 0));
  EQUAL(cuMulticastAddDevice(object, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemRelease(again));
  OK(cuMemRelease(object));
}
