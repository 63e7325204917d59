// Maps memory to sparse arrays tile by tile, and to deferred arrays as a whole.
#include "tiles.h"

#include <sys/mman.h>

#include <map>
#include <mutex>

#include "array.h"
#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"
#include "core/stream.h"
#include "vmm/physical.h"

namespace shoal {

namespace {

// Maps the memory of a tile pool into this process.
class PoolView {
 public:
  static std::shared_ptr<PoolView> of(const std::shared_ptr<Physical>& physical) {
    static std::mutex* mutex = new std::mutex;
    static auto* views = new std::map<const Physical*, std::weak_ptr<PoolView>>;
    std::lock_guard lock(*mutex);
    auto& slot = (*views)[physical.get()];
    auto view = slot.lock();
    if (!view) slot = view = std::make_shared<PoolView>(physical);
    for (auto each = views->begin(); each != views->end();)
      each = each->second.expired() ? views->erase(each) : std::next(each);
    return view;
  }
  explicit PoolView(std::shared_ptr<Physical> physical)
      : physical_(std::move(physical)),
        base(static_cast<char*>(physical_->file->map(0, physical_->size, PROT_READ | PROT_WRITE))) {}
  ~PoolView() { munmap(base, physical_->size); }

 private:
  const std::shared_ptr<Physical> physical_;

 public:
  char* const base;
};

// Each layer and each face has its own tail.
size_t tailsOf(const Array& array) { return array.dimensions() == 3 ? 1 : array.depth; }

size_t tilesFor(size_t texels, size_t tile) { return (texels + tile - 1) / tile; }

// A box of tiles of an array, and the memory it will map to; no `view` unmaps the box.
struct Change {
  std::shared_ptr<Array> array;
  size_t first[3] = {}, count[3] = {1, 1, 1};
  std::shared_ptr<PoolView> view;
  size_t offset = 0;

  void apply() const {
    auto tiles = std::make_shared<Tiles>(*array->tiles());
    size_t next = offset;
    for (size_t z = 0; z < count[2]; ++z) {
      for (size_t y = 0; y < count[1]; ++y) {
        for (size_t x = 0; x < count[0]; ++x, next += kTileBytes) {
          const size_t index = ((first[2] + z) * tiles->down + first[1] + y) * tiles->across + first[0] + x;
          tiles->at[index] = view ? view->base + next : nullptr;
          tiles->held[index] = view;
        }
      }
    }
    array->setTiles(std::move(tiles));
  }
};

bool isAligned(size_t start, size_t length, size_t size, size_t tile) {
  return length != 0 && start % tile == 0 && start < size && length <= size - start &&
         (length % tile == 0 || start + length == size);
}

// Finds the tiles for a box of texels in one level.
CUresult changeOfLevel(const CUarrayMapInfo& info, const std::vector<std::shared_ptr<Array>>& levels,
                       const SparseLayout& layout, Change& change, size_t& needed) {
  const auto& box = info.subresource.sparseLevel;
  if (box.level >= levels.size() || box.level >= layout.tailFirst) return CUDA_ERROR_INVALID_VALUE;
  change.array = levels[box.level];
  const Array& array = *change.array;
  const bool is3D = array.dimensions() == 3;
  if (array.isLayered() || array.isCubemap() ? box.layer >= array.depth : box.layer != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (!is3D && (box.offsetZ != 0 || box.extentDepth != 1)) return CUDA_ERROR_INVALID_VALUE;
  if (!isAligned(box.offsetX, box.extentWidth, array.width, layout.width) ||
      !isAligned(box.offsetY, box.extentHeight, array.height, layout.height) ||
      (is3D && !isAligned(box.offsetZ, box.extentDepth, array.depth, layout.depth))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  change.first[0] = box.offsetX / layout.width;
  change.first[1] = box.offsetY / layout.height;
  change.first[2] = is3D ? box.offsetZ / layout.depth : box.layer;
  change.count[0] = tilesFor(box.extentWidth, layout.width);
  change.count[1] = tilesFor(box.extentHeight, layout.height);
  change.count[2] = is3D ? tilesFor(box.extentDepth, layout.depth) : 1;
  needed = change.count[0] * change.count[1] * change.count[2] * kTileBytes;
  return CUDA_SUCCESS;
}

CUresult prepare(Context& context, const CUarrayMapInfo& info, std::vector<Change>& changes) {
  std::vector<std::shared_ptr<Array>> levels;
  if (info.resourceType == CU_RESOURCE_TYPE_ARRAY) {
    auto found = arrays().find(info.resource.array);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    if (found->isPart) return CUDA_ERROR_INVALID_VALUE;
    levels.push_back(std::move(found));
  } else if (info.resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
    auto found = mipmappedArrays().find(info.resource.mipmap);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    levels = found->levels;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Array& whole = *levels[0];
  const bool isMap = info.memOperationType == CU_MEM_OPERATION_TYPE_MAP;
  if (!whole.tiles() || &whole.context->device != &context.device || info.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!isMap && info.memOperationType != CU_MEM_OPERATION_TYPE_UNMAP) return CUDA_ERROR_INVALID_VALUE;
  if (info.deviceBitMask != 1u << context.device.ordinal) return CUDA_ERROR_INVALID_VALUE;
  const size_t before = changes.size();
  size_t needed = 0, offset = info.offset;
  const bool isDeferred = (whole.descriptor.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0;
  const SparseLayout layout = isDeferred ? SparseLayout{} : sparseLayout(levels);
  if (isDeferred || info.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
    const auto& tail = info.subresource.miptail;
    if (!isDeferred && layout.tailFirst == levels.size()) return CUDA_ERROR_INVALID_VALUE;
    if (!isDeferred && (tail.layer >= tailsOf(whole) || tail.offset % kTileBytes != 0 || tail.size % kTileBytes != 0))
      return CUDA_ERROR_INVALID_VALUE;
    // The software device cannot map a part of a tail.
    if (!isDeferred && (tail.offset != 0 || tail.size != layout.tailBytes)) return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t level = isDeferred ? 0 : layout.tailFirst; level < levels.size(); ++level) {
      changes.push_back({levels[level]});
      changes.back().offset = offset + needed;
      if (!isDeferred) changes.back().first[2] = tail.layer;
      needed += levels[level]->sliceBytes * levels[level]->depth / (isDeferred ? 1 : tailsOf(whole));
    }
  } else if (info.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL) {
    Change change;
    if (const CUresult status = changeOfLevel(info, levels, layout, change, needed)) return status;
    change.offset = offset;
    changes.push_back(std::move(change));
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!isMap) return CUDA_SUCCESS;
  if (info.memHandleType != CU_MEM_HANDLE_TYPE_GENERIC) return CUDA_ERROR_INVALID_VALUE;
  const auto memory = memoryHandles().find(info.memHandle.memHandle);
  if (!memory || !memory->physical) return CUDA_ERROR_INVALID_VALUE;
  const auto& physical = memory->physical;
  const bool isPool = (physical->properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) != 0;
  if (!isPool || physical->device != &context.device || offset % kTileBytes != 0) return CUDA_ERROR_INVALID_VALUE;
  if (offset > physical->size || needed > physical->size - offset) return CUDA_ERROR_INVALID_VALUE;
  const auto view = PoolView::of(physical);
  for (size_t index = before; index < changes.size(); ++index) changes[index].view = view;
  return CUDA_SUCCESS;
}

CUresult mapArrays(const CUarrayMapInfo* list, unsigned count, CUstream handle, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto& context) -> CUresult {
    if (list == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    if (stream->isCaptured) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    auto changes = std::make_shared<std::vector<Change>>();
    for (unsigned index = 0; index < count; ++index) {
      if (const CUresult status = prepare(*context, list[index], *changes)) return status;
    }
    Operation operation;
    operation.run = [changes] {
      for (auto& each : *changes) each.apply();
      return CUDA_SUCCESS;
    };
    stream->enqueue(std::move(operation));
    return CUDA_SUCCESS;
  });
}

}  // namespace

SparseLayout sparseLayout(const std::vector<std::shared_ptr<Array>>& levels) {
  const Array& first = *levels[0];
  const auto size = static_cast<unsigned>(__builtin_ctz(first.format.bytes()));  // 1 to 16 bytes
  const bool is3D = first.dimensions() == 3;
  SparseLayout layout;
  layout.width = is3D ? 64u >> ((size + 2) / 3) : 256u >> (size / 2);
  layout.height = is3D ? 32u >> (size / 3) : 256u >> ((size + 1) / 2);
  layout.depth = is3D ? 32u >> ((size + 1) / 3) : 1;
  // An array that is not mipmapped has no tail, even if it is smaller than a tile.
  unsigned level = levels.size() == 1 && !first.isPart ? 1 : 0;
  while (level < levels.size() && levels[level]->width >= layout.width && levels[level]->height >= layout.height &&
         (!is3D || levels[level]->depth >= layout.depth))
    ++level;
  layout.tailFirst = level;
  for (; level < levels.size(); ++level)
    layout.tailBytes += levels[level]->sliceBytes * levels[level]->depth / tailsOf(first);
  layout.tailBytes = (layout.tailBytes + kTileBytes - 1) / kTileBytes * kTileBytes;
  return layout;
}

void makeTiles(const std::vector<std::shared_ptr<Array>>& levels) {
  const bool isSparse = (levels[0]->descriptor.Flags & CUDA_ARRAY3D_SPARSE) != 0;
  const SparseLayout layout = isSparse ? sparseLayout(levels) : SparseLayout{};
  for (size_t level = 0; level < levels.size(); ++level) {
    Array& array = *levels[level];
    auto tiles = std::make_shared<Tiles>();
    tiles->texelBytes = array.format.bytes();
    const bool isTiled = isSparse && level < layout.tailFirst;
    tiles->width = isTiled ? layout.width : array.width;
    tiles->height = isTiled ? layout.height : array.height;
    tiles->depth = isTiled ? layout.depth : isSparse ? array.depth / tailsOf(array) : array.depth;
    tiles->across = tilesFor(array.width, tiles->width);
    tiles->down = tilesFor(array.height, tiles->height);
    tiles->deep = tilesFor(array.depth, tiles->depth);
    tiles->at.resize(tiles->across * tiles->down * tiles->deep);
    tiles->held.resize(tiles->at.size());
    array.setTiles(std::move(tiles));
  }
}

}  // namespace shoal

using namespace shoal;

SHOAL_TWIN(cuMemMapArrayAsync, _ptsz, (CUarrayMapInfo * mapInfoList, unsigned int count, CUstream hStream),
           mapArrays(mapInfoList, count, hStream, perThread))
