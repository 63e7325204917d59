// Values that the CUDA runtime and the driver express differently: texel formats, copy directions, pointer kinds.
#include <shoal/cudart.h>

#include <iterator>
#include <string>
#include <vector>

#include "check.h"

namespace {

struct Texels {
  cudaChannelFormatKind kind;
  int bits;
  CUarray_format format;
};

constexpr Texels kTexels[] = {
    {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
    {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
    {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
    {cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
    {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
    {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
    {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
    {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT},
};

struct Normalised {
  cudaChannelFormatKind kind;
  int bits;
  unsigned channels;
  CUarray_format format;
};

constexpr Normalised kNormalised[] = {
    {cudaChannelFormatKindUnsignedNormalized8X1, 8, 1, CU_AD_FORMAT_UNORM_INT8X1},
    {cudaChannelFormatKindUnsignedNormalized8X2, 8, 2, CU_AD_FORMAT_UNORM_INT8X2},
    {cudaChannelFormatKindUnsignedNormalized8X4, 8, 4, CU_AD_FORMAT_UNORM_INT8X4},
    {cudaChannelFormatKindUnsignedNormalized16X1, 16, 1, CU_AD_FORMAT_UNORM_INT16X1},
    {cudaChannelFormatKindUnsignedNormalized16X2, 16, 2, CU_AD_FORMAT_UNORM_INT16X2},
    {cudaChannelFormatKindUnsignedNormalized16X4, 16, 4, CU_AD_FORMAT_UNORM_INT16X4},
    {cudaChannelFormatKindSignedNormalized8X1, 8, 1, CU_AD_FORMAT_SNORM_INT8X1},
    {cudaChannelFormatKindSignedNormalized8X2, 8, 2, CU_AD_FORMAT_SNORM_INT8X2},
    {cudaChannelFormatKindSignedNormalized8X4, 8, 4, CU_AD_FORMAT_SNORM_INT8X4},
    {cudaChannelFormatKindSignedNormalized16X1, 16, 1, CU_AD_FORMAT_SNORM_INT16X1},
    {cudaChannelFormatKindSignedNormalized16X2, 16, 2, CU_AD_FORMAT_SNORM_INT16X2},
    {cudaChannelFormatKindSignedNormalized16X4, 16, 4, CU_AD_FORMAT_SNORM_INT16X4},
};

// Two rows of three texels. The driver's array has this format, describes itself as requested, and copies texels.
void checkTexels(const cudaChannelFormatDesc& asked, const cudaChannelFormatDesc& told, CUarray_format format,
                 unsigned channels, size_t bytes) {
  cudaArray_t array = nullptr;
  EQUAL(cudaMallocArray(&array, &asked, 3, 2, 0), 0);
  CUDA_ARRAY3D_DESCRIPTOR made;
  OK(cuArray3DGetDescriptor_v2(&made, reinterpret_cast<CUarray>(array)));
  EQUAL(made.Format, format);
  EQUAL(made.NumChannels, channels);
  cudaChannelFormatDesc found{};
  EQUAL(cudaGetChannelDesc(&found, array), 0);
  const int got[] = {found.x, found.y, found.z, found.w, found.f}, want[] = {told.x, told.y, told.z, told.w, told.f};
  for (int part = 0; part < 5; ++part) EQUAL(got[part], want[part]);
  std::vector<unsigned char> in(6 * bytes), out(in.size(), 0);
  for (size_t at = 0; at < in.size(); ++at) in[at] = static_cast<unsigned char>(at + 1);
  EQUAL(cudaMemcpy2DToArray(array, 0, 0, in.data(), 3 * bytes, 3 * bytes, 2, cudaMemcpyHostToDevice), 0);
  cudaMemcpy3DParms part{};
  part.srcArray = array;
  part.srcPos = {1, 1, 0};
  part.dstPtr = {out.data(), 2 * bytes, 2 * bytes, 1};
  part.extent = {2, 1, 1};
  part.kind = cudaMemcpyDeviceToHost;
  EQUAL(cudaMemcpy3D(&part), 0);
  for (size_t at = 0; at < out.size(); ++at) EQUAL(out[at], at < 2 * bytes ? in[4 * bytes + at] : 0);
  // Copy the same texels to another position in the array.
  cudaMemcpy3DParms back{};
  back.srcPtr = part.dstPtr;
  back.dstArray = array;
  back.dstPos = {1, 0, 0};
  back.extent = {2, 1, 1};
  back.kind = cudaMemcpyHostToDevice;
  EQUAL(cudaMemcpy3D(&back), 0);
  EQUAL(cudaMemcpy2DFromArray(out.data(), 3 * bytes, array, 0, 0, 3 * bytes, 2, cudaMemcpyDeviceToHost), 0);
  for (size_t at = 0; at < out.size(); ++at) EQUAL(out[at], in[at >= bytes && at < 3 * bytes ? at + 3 * bytes : at]);
  EQUAL(cudaFreeArray(array), 0);
}

}  // namespace

TEST(every_format_of_texels_is_the_drivers) {
  for (const Texels& each : kTexels) {
    for (const unsigned channels : {1u, 2u, 4u}) {
      const auto bits = [&](unsigned index) { return index < channels ? each.bits : 0; };
      const cudaChannelFormatDesc asked{bits(0), bits(1), bits(2), bits(3), each.kind};
      checkTexels(asked, asked, each.format, channels, static_cast<size_t>(each.bits) / 8 * channels);
    }
  }
  for (const Normalised& each : kNormalised) {
    const auto bits = [&](unsigned index) { return index < each.channels ? each.bits : 0; };
    // The kind determines everything; the requested bits are ignored.
    checkTexels({0, 0, 0, 0, each.kind}, {bits(0), bits(1), bits(2), bits(3), each.kind}, each.format, each.channels,
                static_cast<size_t>(each.bits) / 8 * each.channels);
  }
  // A planar array has channels, but no texels to copy.
  const cudaChannelFormatDesc picture{8, 8, 8, 0, cudaChannelFormatKindNV12};
  cudaArray_t array = nullptr;
  cudaChannelFormatDesc found{};
  EQUAL(cudaMallocArray(&array, &picture, 4, 2, 0), 0);
  EQUAL(cudaGetChannelDesc(&found, array), 0);
  CHECK(memcmp(&found, &picture, sizeof found) == 0);
  char row[12];
  cudaMemcpy3DParms copy{};
  copy.srcArray = array;
  copy.dstPtr = {row, 12, 12, 1};
  copy.extent = {4, 1, 1};
  copy.kind = cudaMemcpyDeviceToHost;
  EQUAL(cudaMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaFreeArray(array), 0);
}

TEST(channels_that_differ_have_gaps_or_no_format_are_refused) {
  constexpr cudaChannelFormatKind integers = cudaChannelFormatKindUnsigned;
  const cudaChannelFormatDesc wrong[] = {{8, 16, 0, 0, integers},
                                         {8, 8, 16, 16, integers},
                                         {8, 8, 8, 16, integers},
                                         {8, 0, 8, 0, integers},
                                         {8, 0, 0, 8, integers},
                                         {0, 8, 0, 0, integers},
                                         {0, 0, 0, 8, integers},
                                         {0, 0, 0, 0, integers},
                                         {7, 0, 0, 0, integers},
                                         {9, 0, 0, 0, integers},
                                         {17, 0, 0, 0, integers},
                                         {31, 0, 0, 0, integers},
                                         {33, 0, 0, 0, integers},
                                         {64, 0, 0, 0, integers},
                                         {-8, 0, 0, 0, integers},
                                         {8, 0, 0, 0, cudaChannelFormatKindFloat},
                                         {32, 0, 0, 0, cudaChannelFormatKindNone},
                                         {32, 0, 0, 0, static_cast<cudaChannelFormatKind>(-1)},
                                         {8, 8, 8, 8, cudaChannelFormatKindUnsignedNormalized1010102},
                                         {8, 0, 0, 0, cudaChannelFormatKindUnsignedBlockCompressed1}};
  cudaArray_t array = nullptr;
  cudaMipmappedArray_t levels = nullptr;
  for (const cudaChannelFormatDesc& each : wrong) {
    EQUAL(cudaMallocArray(&array, &each, 4, 4, 0), cudaErrorInvalidChannelDescriptor);
    EQUAL(cudaMallocMipmappedArray(&levels, &each, {4, 4, 0}, 1, 0), cudaErrorInvalidChannelDescriptor);
  }
  const cudaChannelFormatDesc right{8, 0, 0, 0, integers};
  EQUAL(cudaMallocArray(nullptr, &right, 4, 4, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaMallocMipmappedArray(nullptr, &right, {4, 4, 0}, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaMallocMipmappedArray(&levels, nullptr, {4, 4, 0}, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaGetChannelDesc(nullptr, array), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaFreeMipmappedArray(nullptr), 0);
}

TEST(an_array_tells_what_it_was_asked_for) {
  const cudaChannelFormatDesc bytes{8, 0, 0, 0, cudaChannelFormatKindUnsigned};
  struct {
    cudaExtent extent;
    unsigned flags;
  } const cases[] = {{{7, 0, 0}, 0},
                     {{7, 5, 0}, 0},
                     {{7, 5, 3}, 0},
                     {{7, 5, 3}, CUDA_ARRAY3D_LAYERED},
                     {{6, 6, 6}, CUDA_ARRAY3D_CUBEMAP},
                     {{7, 5, 0}, CUDA_ARRAY3D_SURFACE_LDST}};
  for (auto& each : cases) {
    cudaArray_t array = nullptr;
    EQUAL(cudaMalloc3DArray(&array, &bytes, each.extent, each.flags), 0);
    cudaChannelFormatDesc format{};
    cudaExtent extent{};
    unsigned flags = ~0u;
    EQUAL(cudaArrayGetInfo(&format, &extent, &flags, array), 0);
    EQUAL(format.x, 8);
    CHECK(extent.width == each.extent.width && extent.height == each.extent.height &&
          extent.depth == each.extent.depth);
    EQUAL(flags, each.flags);
    EQUAL(cudaArrayGetInfo(nullptr, nullptr, nullptr, array), 0);
    EQUAL(cudaFreeArray(array), 0);
    EQUAL(cudaArrayGetInfo(&format, &extent, &flags, array), CUDA_ERROR_INVALID_HANDLE);
  }
}

TEST(the_direction_of_a_copy_must_fit_its_ends) {
  enum End { pageable, pinned, device, managed };
  alignas(64) static char pages[2][64];
  void* ends[4][2] = {{pages[0], pages[1]}};
  for (int end = 0; end < 2; ++end) {
    EQUAL(cudaMallocHost(&ends[pinned][end], 64), 0);
    EQUAL(cudaMalloc(&ends[device][end], 64), 0);
    EQUAL(cudaMallocManaged(&ends[managed][end], 64, CU_MEM_ATTACH_GLOBAL), 0);
  }
  for (int from = pageable; from <= managed; ++from) {
    for (int to = pageable; to <= managed; ++to) {
      for (const cudaMemcpyKind kind : {cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                        cudaMemcpyDeviceToDevice, cudaMemcpyDefault}) {
        // The host reaches all memory except device memory. The device reaches all memory except unregistered host
        // memory.
        const auto fits = [](int end, bool isOfDevice) { return end != (isOfDevice ? pageable : device); };
        const bool isFromDevice = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
        const bool isToDevice = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
        const bool isFine = kind == cudaMemcpyDefault || (fits(from, isFromDevice) && fits(to, isToDevice));
        const int want = isFine ? 0 : CUDA_ERROR_INVALID_VALUE;
        const std::string what =
            "from " + std::to_string(from) + " to " + std::to_string(to) + " as " + std::to_string(kind);
        char value = static_cast<char>(1 + from * 25 + to * 5 + kind), found = 0;
        EQUAL(cudaMemcpy(ends[from][0], &value, 1, cudaMemcpyDefault), 0);
        EQUAL(cudaMemset(ends[to][1], 0, 0), 0);
        EQUAL(cudaMemcpy(ends[to][1], &found, 1, cudaMemcpyDefault), 0);
        if (cudaMemcpy(ends[to][1], ends[from][0], 1, kind) != want) throw check::Failure(what);
        EQUAL(cudaMemcpy(&found, ends[to][1], 1, cudaMemcpyDefault), 0);
        if (found != (isFine ? value : 0)) throw check::Failure(what + ": another value");
        if (cudaMemcpy2D(ends[to][1], 8, ends[from][0], 8, 4, 2, kind) != want)
          throw check::Failure(what + ", of rows");
      }
      EQUAL(cudaMemcpy(ends[to][1], ends[from][0], 1, static_cast<cudaMemcpyKind>(-1)),
            cudaErrorInvalidMemcpyDirection);
      EQUAL(cudaMemcpy(ends[to][1], ends[from][0], 1, static_cast<cudaMemcpyKind>(5)), cudaErrorInvalidMemcpyDirection);
      EQUAL(cudaMemcpy2D(ends[to][1], 8, ends[from][0], 8, 4, 2, static_cast<cudaMemcpyKind>(-1)),
            cudaErrorInvalidMemcpyDirection);
      EQUAL(cudaMemcpy2D(ends[to][1], 8, ends[from][0], 8, 4, 2, static_cast<cudaMemcpyKind>(5)),
            cudaErrorInvalidMemcpyDirection);
    }
  }
  for (int end = 0; end < 2; ++end) {
    EQUAL(cudaFreeHost(ends[pinned][end]), 0);
    EQUAL(cudaFree(ends[device][end]), 0);
    EQUAL(cudaFree(ends[managed][end]), 0);
  }
}

TEST(an_array_is_at_the_devices_end_of_a_copy) {
  const cudaChannelFormatDesc bytes{8, 0, 0, 0, cudaChannelFormatKindUnsigned},
      words{32, 0, 0, 0, cudaChannelFormatKindUnsigned};
  cudaArray_t array = nullptr, other = nullptr;
  EQUAL(cudaMallocArray(&array, &bytes, 8, 4, 0), 0);
  EQUAL(cudaMallocArray(&other, &words, 8, 4, 0), 0);
  char rows[32] = {};
  for (int kind = cudaMemcpyHostToHost; kind <= cudaMemcpyDefault; ++kind) {
    const auto direction = static_cast<cudaMemcpyKind>(kind);
    const bool isFromDevice =
        kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
    const bool isToDevice =
        kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
    EQUAL(cudaMemcpy2DToArray(array, 0, 0, rows, 8, 8, 4, direction), isToDevice ? 0 : CUDA_ERROR_INVALID_VALUE);
    EQUAL(cudaMemcpy2DFromArray(rows, 8, array, 0, 0, 8, 4, direction), isFromDevice ? 0 : CUDA_ERROR_INVALID_VALUE);
  }
  for (const int kind : {-1, 5}) {
    EQUAL(cudaMemcpy2DToArray(array, 0, 0, rows, 8, 8, 4, static_cast<cudaMemcpyKind>(kind)),
          cudaErrorInvalidMemcpyDirection);
    EQUAL(cudaMemcpy2DFromArray(rows, 8, array, 0, 0, 8, 4, static_cast<cudaMemcpyKind>(kind)),
          cudaErrorInvalidMemcpyDirection);
  }
  // Only memory has a pitch, which must not be less than the width of the copy.
  EQUAL(cudaMemcpy2DToArray(array, 0, 0, rows, 7, 8, 2, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  EQUAL(cudaMemcpy2DFromArray(rows, 7, array, 0, 0, 8, 2, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
  EQUAL(cudaMemcpy2DToArray(array, 1, 0, rows, 8, 8, 1, cudaMemcpyHostToDevice), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaMemcpy2DToArray(array, 0, 1, rows, 8, 8, 4, cudaMemcpyHostToDevice), CUDA_ERROR_INVALID_VALUE);
  // Each end must be either memory or an array, and two arrays need texels of equal size.
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {rows, 8, 8, 4};
  copy.dstArray = array;
  copy.extent = {8, 4, 1};
  copy.kind = cudaMemcpyDefault;
  EQUAL(cudaMemcpy3D(&copy), 0);
  copy.dstPtr = {rows, 8, 8, 4};
  EQUAL(cudaMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.dstPtr = {};
  copy.srcArray = array;
  EQUAL(cudaMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.srcPtr = {};
  copy.dstArray = other;
  EQUAL(cudaMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.srcArray = nullptr;
  EQUAL(cudaMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
  for (const cudaExtent& nothing : {cudaExtent{0, 4, 1}, {8, 0, 1}, {8, 4, 0}}) {
    copy = {};
    copy.srcPtr = {rows, 1, 8, 4};
    copy.dstArray = array;
    copy.extent = nothing;
    copy.kind = cudaMemcpyDefault;
    EQUAL(cudaMemcpy3D(&copy), 0);
  }
  EQUAL(cudaFreeArray(array), 0);
  EQUAL(cudaFreeArray(other), 0);
}

TEST(slices_are_filled_where_they_lie) {
  char* memory = nullptr;
  EQUAL(cudaMalloc(reinterpret_cast<void**>(&memory), 64), 0);
  EQUAL(cudaMemset(memory, 0, 64), 0);
  // Two slices of two rows of three bytes. The memory has rows of eight bytes and slices of four rows.
  EQUAL(cudaMemset3D({memory, 8, 8, 4}, 7, {3, 2, 2}), 0);
  char found[64];
  EQUAL(cudaMemcpy(found, memory, 64, cudaMemcpyDeviceToHost), 0);
  for (size_t at = 0; at < 64; ++at) EQUAL(found[at], at % 8 < 3 && at / 8 % 4 < 2 ? 7 : 0);
  for (const cudaExtent& nothing : {cudaExtent{0, 2, 2}, {3, 0, 2}, {3, 2, 0}})
    EQUAL(cudaMemset3D({memory, 8, 8, 4}, 9, nothing), 0);
  EQUAL(cudaMemset3D({memory, 8, 8, 1}, 9, {3, 2, 2}), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaMemset3D({memory, 8, 8, 1}, 9, {3, 2, 1}), 0);
  EQUAL(cudaMemset3D({memory, 8, 8, 2}, 9, {3, 2, 2}), 0);
  EQUAL(cudaFree(memory), 0);
}

TEST(each_kind_of_memory_describes_its_pointers) {
  alignas(64) static char pages[64];
  void *pinned = nullptr, *memory = nullptr, *managed = nullptr;
  EQUAL(cudaSetDevice(1), 0);
  EQUAL(cudaMallocHost(&pinned, 64), 0);
  EQUAL(cudaMalloc(&memory, 64), 0);
  EQUAL(cudaMallocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL), 0);
  struct {
    void* pointer;
    int type, device;
    bool isOfDevice, isOfHost;
  } const cases[] = {{pages, 0, cudaInvalidDeviceId, false, true},
                     {pinned, 1, 1, true, true},
                     {memory, 2, 1, true, false},
                     {managed, 3, 1, true, true}};
  for (auto& each : cases) {
    cudaPointerAttributes found;
    memset(&found, 0xff, sizeof found);
    EQUAL(cudaPointerGetAttributes(&found, each.pointer), 0);
    EQUAL(found.type, each.type);
    EQUAL(found.device, each.device);
    CHECK(found.devicePointer == (each.isOfDevice ? each.pointer : nullptr));
    CHECK(found.hostPointer == (each.isOfHost ? each.pointer : nullptr));
    for (const long kept : found.reserved) EQUAL(kept, 0);
  }
  EQUAL(cudaPointerGetAttributes(nullptr, pages), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaFreeHost(pinned), 0);
  EQUAL(cudaFree(memory), 0);
  EQUAL(cudaFree(managed), 0);
  EQUAL(cudaSetDevice(0), 0);
}
