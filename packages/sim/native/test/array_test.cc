// Arrays through the driver's functions: copies of rows, descriptors, destruction, and invalid arguments.
#include <thread>

#include "check.h"

using check::Primary;

namespace {

CUarray made(size_t width, size_t height = 0, size_t depth = 0, unsigned flags = 0, unsigned channels = 1) {
  const CUDA_ARRAY3D_DESCRIPTOR wanted{width, height, depth, CU_AD_FORMAT_UNSIGNED_INT8, channels, flags};
  CUarray out = nullptr;
  if (cuArray3DCreate_v2(&out, &wanted) != CUDA_SUCCESS) throw check::Failure("no array");
  return out;
}

CUresult refused(CUDA_ARRAY3D_DESCRIPTOR wanted) {
  CUarray out = nullptr;
  return cuArray3DCreate_v2(&out, &wanted);
}

}  // namespace

TEST(rows_are_copied_between_all_kinds_of_memory) {
  Primary primary;
  const CUarray one = made(16), two = made(16);
  const CUdeviceptr memory = check::memory(16);
  unsigned char in[16], out[16] = {};
  for (unsigned char at = 0; at < 16; ++at) in[at] = at;
  OK(cuMemcpyHtoA_v2(one, 0, in, 16));
  OK(cuMemcpyAtoA_v2(two, 4, one, 8, 8));
  OK(cuMemcpyAtoD_v2(memory, two, 4, 8));
  OK(cuMemcpyDtoA_v2(one, 0, memory, 8));
  OK(cuMemcpyAtoHAsync_v2(out, one, 0, 16, nullptr));
  OK(cuCtxSynchronize());
  for (unsigned at = 0; at < 16; ++at) EQUAL(out[at], at < 8 ? at + 8 : at);
  OK(cuMemcpyHtoAAsync_v2(one, 15, in, 1, nullptr));
  OK(cuMemcpyAtoH_v2(out, one, 15, 1));
  EQUAL(out[0], 0);
  EQUAL(cuMemcpyHtoA_v2(one, 1, in, 16), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyAtoD_v2(memory, one, 17, 0), CUDA_SUCCESS);
  OK(cuArrayDestroy(one));
  EQUAL(cuMemcpyHtoA_v2(one, 0, in, 16), CUDA_ERROR_INVALID_HANDLE);
  EQUAL(cuArrayDestroy(one), CUDA_ERROR_INVALID_HANDLE);
  OK(cuArrayDestroy(two));
  OK(cuMemFree_v2(memory));
}

TEST(rectangles_are_copied_with_pitches) {
  Primary primary;
  const CUarray array = made(4, 3);
  unsigned char in[30], out[12] = {};
  for (unsigned char at = 0; at < 30; ++at) in[at] = at;
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in;
  copy.srcPitch = 10;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 4;
  copy.Height = 3;
  OK(cuMemcpy2D_v2(&copy));
  CUDA_MEMCPY2D back{};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = array;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = out;
  back.WidthInBytes = 4;
  back.Height = 3;
  OK(cuMemcpy2D_v2(&back));
  for (unsigned at = 0; at < 12; ++at) EQUAL(out[at], at % 4 + at / 4 * 10);
  back.srcY = 1;
  EQUAL(cuMemcpy2D_v2(&back), CUDA_ERROR_INVALID_VALUE);
  OK(cuArrayDestroy(array));
}

TEST(descriptors_come_back) {
  Primary primary;
  CUDA_ARRAY_DESCRIPTOR flat{8, 4, CU_AD_FORMAT_FLOAT, 2}, found{};
  CUarray array = nullptr;
  OK(cuArrayCreate_v2(&array, &flat));
  OK(cuArrayGetDescriptor_v2(&found, array));
  EQUAL(found.Width, 8);
  EQUAL(found.Format, CU_AD_FORMAT_FLOAT);
  OK(cuArrayDestroy(array));
  array = made(8, 4, 2);
  EQUAL(cuArrayGetDescriptor_v2(&found, array), CUDA_ERROR_INVALID_VALUE);
  OK(cuArrayDestroy(array));
}

TEST(sizes_and_formats_that_are_not_there_are_refused) {
  Primary primary;
  constexpr auto u8 = CU_AD_FORMAT_UNSIGNED_INT8;
  EQUAL(refused({0, 0, 0, u8, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(refused({4, 0, 2, u8, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(refused({4, 4, 0, u8, 3, 0}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(refused({4, 4, 0, u8, 1, 1u << 20}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(refused({4, 4, 5, u8, 1, CUDA_ARRAY3D_CUBEMAP}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(refused({4, 4, 0, u8, 1, CUDA_ARRAY3D_LAYERED}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(refused({1 << 18, 0, 0, u8, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(refused({4, 4, 0, static_cast<CUarray_format>(7), 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(refused({4, 4, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0}), CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(refused({100000, 60000, 0, u8, 1, 0}), CUDA_ERROR_OUT_OF_MEMORY);
  EQUAL(cuArray3DCreate_v2(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(parts_go_with_the_whole) {
  Primary primary;
  const CUDA_ARRAY3D_DESCRIPTOR wanted{8, 8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  CUmipmappedArray mipmapped = nullptr;
  CUarray level = nullptr;
  OK(cuMipmappedArrayCreate(&mipmapped, &wanted, 9));  // clamped to four, the maximum
  EQUAL(cuMipmappedArrayGetLevel(&level, mipmapped, 4), CUDA_ERROR_INVALID_VALUE);
  OK(cuMipmappedArrayGetLevel(&level, mipmapped, 3));
  EQUAL(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
  OK(cuMipmappedArrayDestroy(mipmapped));
  CUDA_ARRAY3D_DESCRIPTOR found{};
  EQUAL(cuArray3DGetDescriptor_v2(&found, level), CUDA_ERROR_INVALID_HANDLE);
  EQUAL(cuMipmappedArrayDestroy(mipmapped), CUDA_ERROR_INVALID_HANDLE);
}

TEST(a_context_takes_arrays_and_textures_along) {
  CUarray array = nullptr;
  CUtexObject texture = 0;
  {
    Primary primary;
    array = made(16);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    CUDA_TEXTURE_DESC description{};
    OK(cuTexObjectCreate(&texture, &resource, &description, nullptr));
    EQUAL(cuSurfObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
    EQUAL(cuSurfObjectCreate(&texture, &resource), CUDA_ERROR_INVALID_VALUE);
    description.addressMode[1] = static_cast<CUaddress_mode>(4);
    EQUAL(cuTexObjectCreate(&texture, &resource, &description, nullptr), CUDA_ERROR_INVALID_VALUE);
  }
  Primary primary;
  EQUAL(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  EQUAL(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
}

namespace {

// Physical memory, and a sparse byte array of two by two tiles.
struct Sparse {
  Sparse() {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    wanted.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    if (cuMemCreate(&pool, size_t{2} << 20, &wanted, 0) != CUDA_SUCCESS) throw check::Failure("no pool");
    array = made(512, 512, 0, CUDA_ARRAY3D_SPARSE);
    info.resourceType = CU_RESOURCE_TYPE_ARRAY;
    info.resource.array = array;
    info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    info.subresource.sparseLevel.extentWidth = info.subresource.sparseLevel.extentHeight = 256;
    info.subresource.sparseLevel.extentDepth = 1;
    info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    info.memHandle.memHandle = pool;
    info.deviceBitMask = 1;
  }
  ~Sparse() {
    cuArrayDestroy(array);
    cuMemRelease(pool);
  }
  // Changes one field of a valid mapping and returns the status.
  template <class Change>
  CUresult with(Change&& change, CUstream stream = nullptr) {
    CUarrayMapInfo other = info;
    change(other);
    return cuMemMapArrayAsync(&other, 1, stream);
  }
  CUmemGenericAllocationHandle pool = 0;
  CUarray array = nullptr;
  CUarrayMapInfo info{};
};

}  // namespace

TEST(mappings_of_arrays_are_checked) {
  Primary primary;
  Sparse sparse;
  OK(cuMemMapArrayAsync(&sparse.info, 1, nullptr));
  EQUAL(cuMemMapArrayAsync(&sparse.info, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  const auto refused = [&](auto&& change) { EQUAL(sparse.with(change), CUDA_ERROR_INVALID_VALUE); };
  refused([](auto& each) { each.resourceType = CU_RESOURCE_TYPE_LINEAR; });
  refused([](auto& each) { each.memOperationType = static_cast<CUmemOperationType>(3); });
  refused([](auto& each) { each.memHandle.memHandle = 77; });
  refused([](auto& each) { each.offset = 4096; });
  refused([](auto& each) { each.offset = size_t{2} << 20; });
  refused([](auto& each) { each.deviceBitMask = 2; });
  refused([](auto& each) { each.deviceBitMask = 3; });
  refused([](auto& each) { each.flags = 1; });
  refused([](auto& each) { each.subresource.sparseLevel.offsetX = 128; });
  refused([](auto& each) { each.subresource.sparseLevel.offsetX = 512; });
  refused([](auto& each) { each.subresource.sparseLevel.extentWidth = 0; });
  refused([](auto& each) { each.subresource.sparseLevel.extentWidth = 100; });
  refused([](auto& each) { each.subresource.sparseLevel.extentHeight = 768; });
  refused([](auto& each) { each.subresource.sparseLevel.extentDepth = 2; });
  refused([](auto& each) { each.subresource.sparseLevel.layer = 1; });
  refused([](auto& each) { each.subresource.sparseLevel.level = 1; });
  refused([](auto& each) { each.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL; });
  EQUAL(sparse.with([](auto& each) { each.resource.array = nullptr; }), CUDA_ERROR_INVALID_HANDLE);
  const CUarray plain = made(512, 512);
  refused([&](auto& each) { each.resource.array = plain; });
  OK(cuArrayDestroy(plain));
  const CUstream stream = check::stream();
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EQUAL(cuMemMapArrayAsync(&sparse.info, 1, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphDestroy(graph));
  OK(cuStreamDestroy_v2(stream));
}

// Copies in other streams find either the mapped memory or none.
TEST(memory_is_mapped_while_copies_are_under_way) {
  Primary primary;
  Sparse sparse;
  std::vector<unsigned char> rows(512 * 512, 7);
  const CUstream mapping = check::stream();
  std::thread copying([&] {
    Primary own;
    for (int turn = 0; turn < 20; ++turn) {
      CUDA_MEMCPY2D copy{};
      copy.srcMemoryType = CU_MEMORYTYPE_HOST;
      copy.srcHost = rows.data();
      copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
      copy.dstArray = sparse.array;
      copy.WidthInBytes = copy.Height = 512;
      OK(cuMemcpy2D_v2(&copy));
    }
  });
  for (int turn = 0; turn < 200; ++turn) {
    OK(sparse.with(
        [&](auto& each) {
          each.memOperationType = turn % 2 == 0 ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
        },
        mapping));
    OK(cuStreamSynchronize(mapping));
  }
  copying.join();
  OK(cuCtxSynchronize());
  OK(cuStreamDestroy_v2(mapping));
}
