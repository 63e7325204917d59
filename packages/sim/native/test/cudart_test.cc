// The CUDA runtime of the software device: the current device, the last error, and objects shared with the driver.
#include <shoal/cudart.h>

#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

TEST(the_current_device_is_the_threads) {
  int device = -1, count = 0;
  EQUAL(cudaGetDeviceCount(&count), 0);
  CHECK(count >= 2);
  EQUAL(cudaGetDevice(&device), 0);
  EQUAL(device, 0);
  EQUAL(cudaSetDevice(count), 101);
  EQUAL(cudaPeekAtLastError(), 101);
  EQUAL(cudaGetLastError(), 101);
  EQUAL(cudaGetLastError(), 0);
  EQUAL(cudaSetDevice(1), 0);
  CUdevice ofContext = -1;
  EQUAL(cuCtxGetDevice(&ofContext), CUDA_SUCCESS);
  EQUAL(ofContext, 1);
  std::thread([] {
    int other = -1;
    EQUAL(cudaGetDevice(&other), 0);
    EQUAL(other, 0);
  }).join();
  EQUAL(cudaSetDevice(0), 0);
}

TEST(memory_copies_and_directions) {
  void* memory = nullptr;
  EQUAL(cudaMalloc(&memory, 0), 0);
  CHECK(memory == nullptr);
  EQUAL(cudaMalloc(&memory, 1024), 0);
  std::vector<char> out(1024, 1), back(1024, 0);
  EQUAL(cudaMemcpy(memory, out.data(), 1024, cudaMemcpyHostToDevice), 0);
  EQUAL(cudaMemcpy(back.data(), memory, 1024, cudaMemcpyDefault), 0);
  CHECK(memcmp(out.data(), back.data(), 1024) == 0);
  EQUAL(cudaMemcpy(memory, out.data(), 1024, static_cast<cudaMemcpyKind>(9)), 21);
  EQUAL(cudaMemcpy(memory, out.data(), 1025, cudaMemcpyHostToDevice), 1);
  EQUAL(cudaMemcpy(nullptr, out.data(), 4, cudaMemcpyDefault), 1);
  EQUAL(cudaMemcpy(memory, nullptr, 4, cudaMemcpyDefault), 1);
  EQUAL(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault), 0);
  cudaPointerAttributes attributes;
  EQUAL(cudaPointerGetAttributes(&attributes, memory), 0);
  EQUAL(attributes.type, 2);
  EQUAL(attributes.device, 0);
  EQUAL(cudaPointerGetAttributes(&attributes, out.data()), 0);
  EQUAL(attributes.type, 0);
  EQUAL(cudaMemset(memory, 7, 1024), 0);
  EQUAL(cudaDeviceSynchronize(), 0);
  EQUAL(cudaMemcpy(back.data(), memory, 1024, cudaMemcpyDeviceToHost), 0);
  EQUAL(back[1023], 7);
  EQUAL(cudaFree(memory), 0);
  EQUAL(cudaFree(memory), 1);
  EQUAL(cudaGetLastError(), 1);
}

TEST(streams_and_events_are_the_drivers) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  EQUAL(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING), 0);
  EQUAL(cudaEventCreateWithFlags(&event, CU_EVENT_DISABLE_TIMING), 0);
  EQUAL(shoalSimStreamDelay(stream, 20000000), CUDA_SUCCESS);
  EQUAL(cuEventRecord(event, stream), CUDA_SUCCESS);
  EQUAL(cudaStreamQuery(stream), 600);
  EQUAL(cudaGetLastError(), 600);
  EQUAL(cudaEventSynchronize(event), 0);
  EQUAL(cudaEventDestroy(event), 0);
  EQUAL(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST(advice_on_managed_memory_is_kept) {
  void* memory = nullptr;
  EQUAL(cudaMallocManaged(&memory, 4096, CU_MEM_ATTACH_GLOBAL), 0);
  cudaMemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
  EQUAL(cudaMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here), 0);
  EQUAL(cudaMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere), 101);
  EQUAL(cudaMemAdvise(memory, 4097, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here), 1);
  int preferred = -5;
  EQUAL(cudaMemRangeGetAttribute(&preferred, sizeof preferred, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, 4096),
        0);
  EQUAL(preferred, 0);
  EQUAL(cudaMemPrefetchAsync(memory, 4096, here, 0, nullptr), 0);
  EQUAL(cudaMemRangeGetAttribute(&preferred, sizeof preferred, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory,
                                 4096),
        0);
  EQUAL(preferred, 0);
  // Managed memory belongs to the driver: a setting through one API is visible through the other.
  OK(cuMemAdvise(reinterpret_cast<CUdeviceptr>(memory), 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
  int isReadMostly = -5;
  void* answers[] = {&isReadMostly, &preferred};
  size_t sizes[] = {sizeof isReadMostly, sizeof preferred};
  cudaMemRangeAttribute wanted[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                    CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE};
  EQUAL(cudaMemRangeGetAttributes(answers, sizes, wanted, 2, memory, 4096), 0);
  EQUAL(isReadMostly, 1);
  EQUAL(preferred, CU_MEM_LOCATION_TYPE_DEVICE);
  EQUAL(cudaStreamAttachMemAsync(nullptr, memory, 0, CU_MEM_ATTACH_GLOBAL), 0);
  EQUAL(cudaStreamAttachMemAsync(nullptr, memory, 0, CU_MEM_ATTACH_SINGLE), 1);
  EQUAL(cudaStreamAttachMemAsync_ptsz(nullptr, memory, 16, CU_MEM_ATTACH_GLOBAL), 1);
  EQUAL(cudaFree(memory), 0);
}

TEST(properties_are_the_attributes) {
  cudaDeviceProp properties, zeroed{};
  memset(&properties, 0xff, sizeof properties);
  EQUAL(cudaGetDeviceProperties(&properties, 1), 0);
  EQUAL(cudaGetDeviceProperties(&zeroed, 1), 0);
  // The call overwrites all old content. Reserved fields are zero.
  CHECK(memcmp(&properties, &zeroed, sizeof properties) == 0);
  int sms = 0, pitch = 0;
  EQUAL(cuDeviceGetAttribute(&sms, 16, 1), CUDA_SUCCESS);
  EQUAL(cuDeviceGetAttribute(&pitch, 51, 1), CUDA_SUCCESS);
  EQUAL(properties.multiProcessorCount, sms);
  EQUAL(properties.texturePitchAlignment, static_cast<size_t>(pitch));
  EQUAL(cudaGetDeviceProperties(&properties, 99), 101);
}

TEST(a_reset_device_starts_anew) {
  void* memory = nullptr;
  EQUAL(cudaMalloc(&memory, 16), 0);
  EQUAL(cudaDeviceReset(), 0);
  EQUAL(cudaFree(memory), 1);
  EQUAL(cudaMalloc(&memory, 16), 0);
  EQUAL(cudaFree(memory), 0);
}

TEST(errors_have_names) {
  CHECK(strcmp(cudaGetErrorName(2), "cudaErrorMemoryAllocation") == 0);
  CHECK(strcmp(cudaGetErrorString(2), "out of memory") == 0);
  CHECK(strcmp(cudaGetErrorName(12345), "unrecognized error code") == 0);
  int version = 0;
  EQUAL(cudaRuntimeGetVersion(&version), 0);
  EQUAL(version, 13000);
}

TEST(rectangles_and_boxes_are_copied) {
  std::vector<unsigned char> in(6 * 8 * 3), out(in.size(), 0);
  for (size_t at = 0; at < in.size(); ++at) in[at] = static_cast<unsigned char>(at);
  void* memory = nullptr;
  size_t pitch = 0;
  EQUAL(cudaMallocPitch(&memory, &pitch, 5, 4), 0);
  // Five bytes of each of four rows. The rows are eight bytes apart.
  EQUAL(cudaMemcpy2D(memory, pitch, in.data(), 8, 5, 4, cudaMemcpyHostToDevice), 0);
  EQUAL(cudaMemcpy2DAsync(out.data(), 5, memory, pitch, 5, 4, cudaMemcpyDefault, nullptr), 0);
  EQUAL(cudaDeviceSynchronize(), 0);
  for (size_t at = 0; at < 20; ++at) EQUAL(out[at], at / 5 * 8 + at % 5);
  EQUAL(cudaMemcpy2D(memory, 4, in.data(), 8, 5, 4, cudaMemcpyHostToDevice), 12);
  EQUAL(cudaMemcpy2D(memory, pitch, in.data(), 8, 5, 4, cudaMemcpyDeviceToHost), 1);
  EQUAL(cudaMemcpy2D(nullptr, pitch, in.data(), 8, 5, 4, cudaMemcpyHostToDevice), 1);
  EQUAL(cudaMemcpy2D(memory, pitch, in.data(), 8, 0, 4, cudaMemcpyHostToDevice), 0);
  EQUAL(cudaFree(memory), 0);

  cudaPitchedPtr box{};
  EQUAL(cudaMalloc3D(&box, {6, 8, 3}), 0);
  EQUAL(cudaMemset3D(box, 9, {6, 8, 3}), 0);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {in.data(), 6, 6, 8};
  copy.dstPtr = box;
  copy.srcPos = {1, 2, 1};
  copy.dstPos = {0, 1, 0};
  copy.extent = {4, 5, 2};
  copy.kind = cudaMemcpyHostToDevice;
  EQUAL(cudaMemcpy3D(&copy), 0);
  cudaMemcpy3DParms back{};
  back.srcPtr = box;
  back.dstPtr = {out.data(), 6, 6, 8};
  back.extent = {6, 8, 3};
  back.kind = cudaMemcpyDeviceToHost;
  EQUAL(cudaMemcpy3DAsync(&back, nullptr), 0);
  EQUAL(cudaDeviceSynchronize(), 0);
  for (size_t z = 0; z < 3; ++z) {
    for (size_t y = 0; y < 8; ++y) {
      for (size_t x = 0; x < 6; ++x) {
        const bool isCopied = x < 4 && y >= 1 && y < 6 && z < 2;
        EQUAL(out[(z * 8 + y) * 6 + x], isCopied ? in[((z + 1) * 8 + y + 1) * 6 + x + 1] : 9);
      }
    }
  }
  EQUAL(cudaMemcpy3D(nullptr), 1);
  EQUAL(cudaFree(box.ptr), 0);
}

TEST(arrays_are_made_described_and_copied) {
  const cudaChannelFormatDesc two = cudaCreateChannelDesc(16, 16, 0, 0, cudaChannelFormatKindUnsigned);
  cudaArray_t array = nullptr;
  EQUAL(cudaMalloc3DArray(&array, &two, {4, 3, 2}, 0), 0);
  cudaChannelFormatDesc found{};
  cudaExtent extent{};
  unsigned flags = 1;
  EQUAL(cudaArrayGetInfo(&found, &extent, &flags, array), 0);
  CHECK(memcmp(&found, &two, sizeof two) == 0);
  EQUAL(extent.width * 100 + extent.height * 10 + extent.depth, 432);
  EQUAL(flags, 0);
  std::vector<unsigned> in(24), out(24, 0);
  for (unsigned at = 0; at < 24; ++at) in[at] = at * 65537;
  // Sizes count texels, also for the memory side of an array copy.
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {in.data(), 16, 16, 3};
  copy.dstArray = array;
  copy.extent = {4, 3, 2};
  copy.kind = cudaMemcpyHostToDevice;
  EQUAL(cudaMemcpy3D(&copy), 0);
  cudaMemcpy3DParms part{};
  part.srcArray = array;
  part.srcPos = {1, 1, 1};
  part.dstPtr = {out.data(), 12, 12, 2};
  part.extent = {3, 2, 1};
  part.kind = cudaMemcpyDeviceToHost;
  EQUAL(cudaMemcpy3D(&part), 0);
  for (unsigned at = 0; at < 6; ++at) EQUAL(out[at], in[12 + (1 + at / 3) * 4 + 1 + at % 3]);
  copy.kind = cudaMemcpyDeviceToHost;
  EQUAL(cudaMemcpy3D(&copy), 1);
  copy.dstPtr = copy.srcPtr;
  EQUAL(cudaMemcpy3D(&copy), 1);
  EQUAL(cudaFreeArray(array), 0);
  EQUAL(cudaFreeArray(nullptr), 0);

  const cudaChannelFormatDesc real = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  EQUAL(cudaMallocArray(&array, &real, 4, 3, 0), 0);
  EQUAL(cudaGetChannelDesc(&found, array), 0);
  CHECK(memcmp(&found, &real, sizeof real) == 0);
  EQUAL(cudaMemcpy2DToArray(array, 4, 1, in.data(), 8, 8, 2, cudaMemcpyHostToDevice), 0);
  EQUAL(cudaMemcpy2DFromArray(out.data(), 8, array, 4, 1, 8, 2, cudaMemcpyDeviceToHost), 0);
  for (unsigned at = 0; at < 4; ++at) EQUAL(out[at], in[at]);
  EQUAL(cudaFreeArray(array), 0);
  for (const cudaChannelFormatDesc& none : {cudaChannelFormatDesc{8, 16, 0, 0, cudaChannelFormatKindUnsigned},
                                            {16, 0, 16, 0, cudaChannelFormatKindUnsigned},
                                            {0, 0, 0, 0, cudaChannelFormatKindUnsigned},
                                            {64, 0, 0, 0, cudaChannelFormatKindSigned},
                                            {8, 0, 0, 0, cudaChannelFormatKindFloat},
                                            {32, 0, 0, 0, cudaChannelFormatKindNone}}) {
    EQUAL(cudaMallocArray(&array, &none, 4, 3, 0), cudaErrorInvalidChannelDescriptor);
  }
  EQUAL(cudaMallocArray(&array, nullptr, 4, 3, 0), 1);
  cudaMipmappedArray_t levels = nullptr;
  EQUAL(cudaMallocMipmappedArray(&levels, &real, {8, 8, 0}, 3, 0), 0);
  EQUAL(cudaGetMipmappedArrayLevel(&array, levels, 2), 0);
  EQUAL(cudaArrayGetInfo(nullptr, &extent, nullptr, array), 0);
  EQUAL(extent.width, 2);
  EQUAL(cudaGetMipmappedArrayLevel(&array, levels, 3), 1);
  EQUAL(cudaFreeMipmappedArray(levels), 0);
  const cudaChannelFormatDesc picture{8, 8, 8, 0, cudaChannelFormatKindNV12};
  EQUAL(cudaMallocArray(&array, &picture, 4, 2, 0), 0);
  cudaArray_t plane = nullptr;
  EQUAL(cudaArrayGetPlane(&plane, array, 1), 0);
  EQUAL(cudaGetChannelDesc(&found, plane), 0);
  EQUAL(found.x * 100 + found.y * 10 + found.z, 880);
  EQUAL(cudaFreeArray(array), 0);
  for (const int kind : {cudaChannelFormatKindUnsignedNormalized8X2, cudaChannelFormatKindSignedNormalized16X4}) {
    const cudaChannelFormatDesc norm{8, 8, 0, 0, static_cast<cudaChannelFormatKind>(kind)};
    EQUAL(cudaMallocArray(&array, &norm, 4, 0, 0), 0);
    EQUAL(cudaGetChannelDesc(&found, array), 0);
    EQUAL(found.f, kind);
    EQUAL(cudaFreeArray(array), 0);
  }
}

TEST(textures_and_surfaces_are_those_of_the_driver) {
  const cudaChannelFormatDesc bytes = cudaCreateChannelDesc(8, 8, 8, 8, cudaChannelFormatKindUnsigned);
  cudaArray_t array = nullptr;
  EQUAL(cudaMallocArray(&array, &bytes, 8, 8, 2 /* surface */), 0);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc texture{};
  texture.addressMode[0] = static_cast<cudaTextureAddressMode>(3);
  texture.filterMode = static_cast<cudaTextureFilterMode>(1);
  texture.readMode = static_cast<cudaTextureReadMode>(1);  // as normalized floats
  texture.sRGB = texture.normalizedCoords = texture.disableTrilinearOptimization = 1;
  texture.borderColor[2] = 0.5f;
  texture.maxAnisotropy = 4;
  texture.maxMipmapLevelClamp = 3;
  cudaTextureObject_t object = 0;
  EQUAL(cudaCreateTextureObject(&object, &resource, &texture, nullptr), 0);
  CUDA_TEXTURE_DESC found;
  EQUAL(cuTexObjectGetTextureDesc(&found, object), CUDA_SUCCESS);
  EQUAL(found.flags, CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
  EQUAL(found.addressMode[0] * 100 + found.filterMode * 10 + static_cast<int>(found.maxAnisotropy), 314);
  // The driver does not return the border colour.
  CHECK(found.borderColor[2] == 0 && found.maxMipmapLevelClamp == 3);
  EQUAL(cudaDestroyTextureObject(object), 0);
  EQUAL(cudaDestroyTextureObject(object), 1);
  texture.readMode = static_cast<cudaTextureReadMode>(0);
  EQUAL(cudaCreateTextureObject(&object, &resource, &texture, nullptr), 0);
  EQUAL(cudaDestroyTextureObject(object), 0);
  texture.filterMode = static_cast<cudaTextureFilterMode>(0);
  cudaResourceViewDesc view{};
  view.width = view.height = 8;
  EQUAL(cudaCreateTextureObject(&object, &resource, &texture, &view), 0);
  EQUAL(cuTexObjectGetTextureDesc(&found, object), CUDA_SUCCESS);
  CHECK((found.flags & CU_TRSF_READ_AS_INTEGER) != 0);
  CUDA_RESOURCE_VIEW_DESC part;
  EQUAL(cuTexObjectGetResourceViewDesc(&part, object), CUDA_SUCCESS);
  EQUAL(part.width, 8);
  EQUAL(cudaDestroyTextureObject(object), 0);
  cudaSurfaceObject_t surface = 0;
  EQUAL(cudaCreateSurfaceObject(&surface, &resource), 0);
  EQUAL(cudaDestroyTextureObject(surface), 1);
  EQUAL(cudaDestroySurfaceObject(surface), 0);
  EQUAL(cudaFreeArray(array), 0);
  EQUAL(cudaCreateTextureObject(&object, &resource, &texture, nullptr), 400);
  void* memory = nullptr;
  EQUAL(cudaMalloc(&memory, 4096), 0);
  const cudaChannelFormatDesc real = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {memory, real, 16, 8, 128};
  EQUAL(cudaCreateTextureObject(&object, &resource, &texture, nullptr), 0);
  EQUAL(cudaDestroyTextureObject(object), 0);
  resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {memory, real, 4096};
  EQUAL(cudaCreateTextureObject(&object, &resource, &texture, nullptr), 0);
  CUDA_RESOURCE_DESC looked;
  EQUAL(cuTexObjectGetResourceDesc(&looked, object), CUDA_SUCCESS);
  EQUAL(looked.res.linear.sizeInBytes, 4096);
  EQUAL(cudaDestroyTextureObject(object), 0);
  EQUAL(cudaCreateSurfaceObject(&surface, &resource), 1);
  EQUAL(cudaCreateTextureObject(nullptr, &resource, &texture, nullptr), 1);
  EQUAL(cudaFree(memory), 0);
}
