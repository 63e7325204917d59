#include "array.h"

#include <algorithm>

#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"
#include "graph/capture.h"
#include "pool/pool.h"

namespace shoal {

HandleTable<Array>& arrays() {
  static auto* table = new HandleTable<Array>(17, "arrays");
  return *table;
}
HandleTable<MipmappedArray>& mipmappedArrays() {
  static auto* table = new HandleTable<MipmappedArray>(18, "mipmapped arrays");
  return *table;
}

bool findFormat(CUarray_format format, unsigned channels, TexelFormat& out) {
  constexpr struct {
    int format;
    Channel channel;
    unsigned bytes;
  } plain[] = {{CU_AD_FORMAT_UNSIGNED_INT8, Channel::unsignedInteger, 1},
               {CU_AD_FORMAT_UNSIGNED_INT16, Channel::unsignedInteger, 2},
               {CU_AD_FORMAT_UNSIGNED_INT32, Channel::unsignedInteger, 4},
               {CU_AD_FORMAT_SIGNED_INT8, Channel::signedInteger, 1},
               {CU_AD_FORMAT_SIGNED_INT16, Channel::signedInteger, 2},
               {CU_AD_FORMAT_SIGNED_INT32, Channel::signedInteger, 4},
               {CU_AD_FORMAT_HALF, Channel::real, 2},
               {CU_AD_FORMAT_FLOAT, Channel::real, 4}};
  for (auto& each : plain) {
    if (each.format != static_cast<int>(format)) continue;
    out = {each.channel, channels, each.bytes};
    return channels == 1 || channels == 2 || channels == 4;
  }
  // The names of these formats include the number of channels: three formats each, for one, two and four channels.
  constexpr struct {
    int first;
    Channel channel;
    unsigned bytes;
  } norms[] = {{CU_AD_FORMAT_UNORM_INT8X1, Channel::unsignedNorm, 1},
               {CU_AD_FORMAT_UNORM_INT16X1, Channel::unsignedNorm, 2},
               {CU_AD_FORMAT_SNORM_INT8X1, Channel::signedNorm, 1},
               {CU_AD_FORMAT_SNORM_INT16X1, Channel::signedNorm, 2}};
  for (auto& each : norms) {
    const int step = static_cast<int>(format) - each.first;
    if (step < 0 || step > 2) continue;
    out = {each.channel, 1u << step, each.bytes};
    return channels == out.channels;
  }
  return false;
}

namespace {

constexpr unsigned kArrayFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                                 CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_DEPTH_TEXTURE |
                                 CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
constexpr unsigned kUnmapped = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

// The limits of compute capability 9.0.
CUresult checkExtent(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  const bool isLayered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0, isCubemap = (d.Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
  if (d.Width == 0 || (d.Flags & ~kArrayFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((d.Flags & CUDA_ARRAY3D_DEPTH_TEXTURE) != 0 || ((d.Flags & CUDA_ARRAY3D_SPARSE) != 0 && d.Height == 0))
    return CUDA_ERROR_INVALID_VALUE;
  if (isCubemap) {
    const bool areFaces = isLayered ? d.Depth != 0 && d.Depth % 6 == 0 && d.Depth <= 2046 : d.Depth == 6;
    return d.Width == d.Height && areFaces && d.Width <= 32768 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  bool isFine;
  if (isLayered) isFine = d.Depth != 0 && d.Depth <= 2048 && d.Width <= 32768 && d.Height <= 32768;
  else if (d.Depth != 0) isFine = d.Height != 0 && d.Width <= 16384 && d.Height <= 16384 && d.Depth <= 16384;
  else isFine = d.Height != 0 ? d.Width <= 131072 && d.Height <= 65536 : d.Width <= 131072;
  // Texture gather reads four neighbouring texels, which only 2-D arrays support.
  const bool isGatherFine = (d.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) == 0 ||
                            (d.Height != 0 && (d.Depth == 0 || isLayered) && d.Width <= 32768 && d.Height <= 32768);
  return isFine && isGatherFine ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

std::shared_ptr<Array> describe(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, const TexelFormat& format,
                                const std::shared_ptr<Context>& context) {
  auto made = std::make_shared<Array>();
  made->descriptor = descriptor;
  made->format = format;
  made->context = context;
  made->width = descriptor.Width;
  made->height = std::max<size_t>(descriptor.Height, 1);
  made->depth = std::max<size_t>(descriptor.Depth, 1);
  made->rowBytes = (made->usedBytes() + 15) & ~size_t{15};
  made->sliceBytes = made->rowBytes * made->height;
  made->handle = arrays().reserve();
  return made;
}

size_t bytesOf(const Array& array) { return array.sliceBytes * array.depth; }

ArrayMemory memoryOf(const std::shared_ptr<Context>& context) {
  return [context](size_t bytes, uint64_t& base, std::shared_ptr<Backing>& memory) -> CUresult {
    Device& device = context->device;
    base = device.arena.allocate(bytes);
    if (base == 0) {
      trimPoolsOf(&device);
      base = device.arena.allocate(bytes);
    }
    if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    memory = std::make_shared<ArenaBlock>(device.arena, base, bytes, false);
    return CUDA_SUCCESS;
  };
}

// Allocates the memory of all parts in one block. Sparse and deferred arrays get empty tiles instead.
CUresult allocate(const ArrayMemory& take, const std::vector<std::shared_ptr<Array>>& parts) {
  if ((parts[0]->descriptor.Flags & kUnmapped) != 0) {
    makeTiles(parts);
    return CUDA_SUCCESS;
  }
  size_t bytes = 0;
  for (auto& each : parts) bytes += (bytesOf(*each) + 511) & ~size_t{511};
  uint64_t base = 0;
  std::shared_ptr<Backing> memory;
  if (const CUresult status = take(bytes, base, memory)) return status;
  for (auto& each : parts) {
    each->memory = memory;
    each->data = reinterpret_cast<char*>(base);
    base += (bytesOf(*each) + 511) & ~size_t{511};
  }
  return CUDA_SUCCESS;
}

// Planar formats: one plane of brightness, and one or two planes of colour, which may have half the width and height.
struct Planar {
  int format;
  unsigned bytes, planes, halves;  // halves: 0: full size, 1: half the width, 2: half of both
};
const Planar* findPlanar(CUarray_format format) {
  static constexpr Planar all[] = {{CU_AD_FORMAT_NV12, 1, 2, 2},
                                   {CU_AD_FORMAT_P010, 2, 2, 2},
                                   {CU_AD_FORMAT_P016, 2, 2, 2},
                                   {CU_AD_FORMAT_NV16, 1, 2, 1},
                                   {CU_AD_FORMAT_P210, 2, 2, 1},
                                   {CU_AD_FORMAT_P216, 2, 2, 1},
                                   {CU_AD_FORMAT_Y444_PLANAR8, 1, 3, 0},
                                   {CU_AD_FORMAT_Y444_PLANAR10, 2, 3, 0},
                                   {CU_AD_FORMAT_YUV444_8bit_SemiPlanar, 1, 2, 0},
                                   {CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 2, 2, 0}};
  for (auto& each : all) {
    if (each.format == static_cast<int>(format)) return &each;
  }
  return nullptr;
}

CUresult createPlanar(const CUDA_ARRAY3D_DESCRIPTOR& d, const Planar& picture, const std::shared_ptr<Context>& context,
                      std::shared_ptr<Array>& out) {
  if (d.NumChannels != 3 || d.Height == 0 || d.Depth != 0 || (d.Flags & kUnmapped) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if ((picture.halves > 0 && d.Width % 2 != 0) || (picture.halves > 1 && d.Height % 2 != 0))
    return CUDA_ERROR_INVALID_VALUE;
  out = describe(d, {Channel::unsignedInteger, 0, picture.bytes}, context);
  for (unsigned plane = 0; plane < picture.planes; ++plane) {
    CUDA_ARRAY3D_DESCRIPTOR own = d;
    own.Format = picture.bytes == 1 ? CU_AD_FORMAT_UNSIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT16;
    own.NumChannels = plane == 1 && picture.planes == 2 ? 2 : 1;
    if (plane > 0 && picture.halves > 0) own.Width /= 2;
    if (plane > 0 && picture.halves > 1) own.Height /= 2;
    out->planes.push_back(describe(own, {Channel::unsignedInteger, own.NumChannels, picture.bytes}, context));
    out->planes.back()->isPart = true;
  }
  if (const CUresult status = allocate(memoryOf(context), out->planes)) return status;
  for (auto& each : out->planes) arrays().put(each->handle, each);
  return CUDA_SUCCESS;
}

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& d) {
  return inContext([&](auto& context) -> CUresult {
    if (const CUresult status = checkUnsafeCall()) return status;
    if (const CUresult status = checkExtent(d)) return status;
    std::shared_ptr<Array> made;
    if (const Planar* picture = findPlanar(d.Format)) {
      if (const CUresult status = createPlanar(d, *picture, context, made)) return status;
    } else {
      TexelFormat format;
      if (!findFormat(d.Format, d.NumChannels, format)) {
        return d.Format >= CU_AD_FORMAT_UNORM_INT_101010_2 && d.Format < CU_AD_FORMAT_UNORM_INT8X1
                   ? CUDA_ERROR_NOT_SUPPORTED
                   : CUDA_ERROR_INVALID_VALUE;
      }
      made = describe(d, format, context);
      if (const CUresult status = allocate(memoryOf(context), {made})) return status;
    }
    arrays().put(made->handle, made);
    *out = reinterpret_cast<CUarray>(made->handle);
    return CUDA_SUCCESS;
  });
}

// New work cannot use a destroyed array. A queued copy keeps the array alive.
CUresult destroy(CUarray handle) {
  return initialised([&]() -> CUresult {
    auto found = arrays().find(handle);
    if (!found || found->isPart) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult status = found->context->synchronize()) return status;
    for (auto& each : found->planes) arrays().take(each->handle);
    arrays().take(found->handle);
    return CUDA_SUCCESS;
  });
}

CUresult destroyMipmapped(CUmipmappedArray handle) {
  return initialised([&]() -> CUresult {
    auto found = mipmappedArrays().find(handle);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult status = found->context->synchronize()) return status;
    for (auto& each : found->levels) arrays().take(each->handle);
    mipmappedArrays().take(reinterpret_cast<uint64_t>(handle));
    return CUDA_SUCCESS;
  });
}

// Destroying a context destroys its arrays.
void forgetArraysOf(const Context& context) {
  const auto isOfIt = [&](auto& each) { return each.context.get() == &context; };
  arrays().takeIf(isOfIt);
  mipmappedArrays().takeIf(isOfIt);
}
[[maybe_unused]] const bool isWatchingForArrays = (Context::whenDestroyed(forgetArraysOf), true);

template <class Body>
CUresult withArray(CUarray handle, Body&& body) {
  return inContext([&](auto&) -> CUresult {
    auto found = arrays().find(handle);
    return found ? body(found) : CUDA_ERROR_INVALID_HANDLE;
  });
}

template <class Body>
CUresult withMipmapped(CUmipmappedArray handle, Body&& body) {
  return inContext([&](auto&) -> CUresult {
    auto found = mipmappedArrays().find(handle);
    return found ? body(*found) : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, unsigned flags,
                      const std::vector<std::shared_ptr<Array>>& parts) {
  if (out == nullptr || (flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = 0;
  for (auto& each : parts) bytes += bytesOf(*each);
  *out = {};
  out->size = (bytes + kTileBytes - 1) / kTileBytes * kTileBytes;
  out->alignment = kTileBytes;
  return CUDA_SUCCESS;
}

CUresult sparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* out, const std::vector<std::shared_ptr<Array>>& levels) {
  if (out == nullptr || (levels[0]->descriptor.Flags & CUDA_ARRAY3D_SPARSE) == 0) return CUDA_ERROR_INVALID_VALUE;
  const SparseLayout layout = sparseLayout(levels);
  *out = {};
  out->tileExtent.width = static_cast<unsigned>(layout.width);
  out->tileExtent.height = static_cast<unsigned>(layout.height);
  out->tileExtent.depth = static_cast<unsigned>(layout.depth);
  // An H200 answers 0 for an array that is not mipmapped.
  out->miptailFirstLevel = levels[0]->isPart ? layout.tailFirst : 0;
  out->miptailSize = layout.tailBytes;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult createMipmapped(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned count,
                         const std::shared_ptr<Context>& context, const ArrayMemory& memory) {
  if (const CUresult status = checkUnsafeCall()) return status;
  if (const CUresult status = checkExtent(d)) return status;
  TexelFormat format;
  if (!findFormat(d.Format, d.NumChannels, format)) return CUDA_ERROR_INVALID_VALUE;
  const bool is3D = d.Depth != 0 && (d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
  size_t longest = std::max(d.Width, std::max<size_t>(d.Height, is3D ? d.Depth : 1));
  unsigned most = 1;
  for (; longest > 1; longest >>= 1) ++most;
  // A count above the possible number of levels means all levels.
  count = std::clamp(count, 1u, most);
  auto made = std::make_shared<MipmappedArray>();
  made->descriptor = d;
  made->context = context;
  for (unsigned level = 0; level < count; ++level) {
    CUDA_ARRAY3D_DESCRIPTOR own = d;
    own.Width = std::max<size_t>(d.Width >> level, 1);
    if (d.Height != 0) own.Height = std::max<size_t>(d.Height >> level, 1);
    if (is3D) own.Depth = std::max<size_t>(d.Depth >> level, 1);
    made->levels.push_back(describe(own, format, context));
    made->levels.back()->isPart = true;
  }
  if (const CUresult status = allocate(memory, made->levels)) return status;
  for (auto& each : made->levels) arrays().put(each->handle, each);
  const uint64_t handle = mipmappedArrays().reserve();
  mipmappedArrays().put(handle, made);
  *out = reinterpret_cast<CUmipmappedArray>(handle);
  return CUDA_SUCCESS;
}

}  // namespace shoal

using namespace shoal;

CUresult cuArray3DCreate_v2(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  return pHandle == nullptr || pAllocateArray == nullptr ? initialised([] { return CUDA_ERROR_INVALID_VALUE; })
                                                         : create(pHandle, *pAllocateArray);
}
CUresult cuArrayCreate_v2(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* pAllocateArray) {
  if (pHandle == nullptr || pAllocateArray == nullptr) return initialised([] { return CUDA_ERROR_INVALID_VALUE; });
  return create(pHandle, {pAllocateArray->Width, pAllocateArray->Height, 0, pAllocateArray->Format,
                          pAllocateArray->NumChannels, 0});
}
CUresult cuArrayDestroy(CUarray hArray) { return destroy(hArray); }
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  return withArray(hArray, [&](auto& array) -> CUresult {
    if (pArrayDescriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pArrayDescriptor = array->descriptor;
    return CUDA_SUCCESS;
  });
}
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  return withArray(hArray, [&](auto& array) -> CUresult {
    const auto& d = array->descriptor;
    if (pArrayDescriptor == nullptr || d.Depth != 0) return CUDA_ERROR_INVALID_VALUE;
    *pArrayDescriptor = {d.Width, d.Height, d.Format, d.NumChannels};
    return CUDA_SUCCESS;
  });
}
CUresult cuArrayGetPlane(CUarray* pPlaneArray, CUarray hArray, unsigned int planeIdx) {
  return withArray(hArray, [&](auto& array) -> CUresult {
    if (pPlaneArray == nullptr || planeIdx >= array->planes.size()) return CUDA_ERROR_INVALID_VALUE;
    *pPlaneArray = reinterpret_cast<CUarray>(array->planes[planeIdx]->handle);
    return CUDA_SUCCESS;
  });
}
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* memoryRequirements, CUarray array,
                                      CUdevice device) {
  return withArray(array, [&](auto& found) -> CUresult {
    Device* ofDevice = nullptr;
    if (const CUresult status = findDevice(device, ofDevice)) return status;
    return requirements(memoryRequirements, found->descriptor.Flags, {found});
  });
}
CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* sparseProperties_, CUarray array) {
  return withArray(array, [&](auto& found) { return sparseProperties(sparseProperties_, {found}); });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc,
                                unsigned int numMipmapLevels) {
  if (pHandle == nullptr || pMipmappedArrayDesc == nullptr) return initialised([] { return CUDA_ERROR_INVALID_VALUE; });
  return inContext([&](auto& context) {
    return createMipmapped(pHandle, *pMipmappedArrayDesc, numMipmapLevels, context, memoryOf(context));
  });
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) { return destroyMipmapped(hMipmappedArray); }
CUresult cuMipmappedArrayGetLevel(CUarray* pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level) {
  return withMipmapped(hMipmappedArray, [&](const MipmappedArray& found) -> CUresult {
    if (pLevelArray == nullptr || level >= found.levels.size()) return CUDA_ERROR_INVALID_VALUE;
    *pLevelArray = reinterpret_cast<CUarray>(found.levels[level]->handle);
    return CUDA_SUCCESS;
  });
}
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* memoryRequirements,
                                               CUmipmappedArray mipmap, CUdevice device) {
  return withMipmapped(mipmap, [&](const MipmappedArray& found) -> CUresult {
    Device* ofDevice = nullptr;
    if (const CUresult status = findDevice(device, ofDevice)) return status;
    return requirements(memoryRequirements, found.descriptor.Flags, found.levels);
  });
}
CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* sparseProperties_, CUmipmappedArray mipmap) {
  return withMipmapped(mipmap,
                       [&](const MipmappedArray& found) { return sparseProperties(sparseProperties_, found.levels); });
}
