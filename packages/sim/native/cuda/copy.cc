#include "copy.h"

#include <algorithm>
#include <cstring>

namespace shoal {

namespace {

// An asynchronous copy from pageable memory is staged up to this size. A larger copy returns when it has completed.
constexpr size_t kLargestStaged = size_t{64} << 20;

// CUDA leaves overlapping copies undefined, because a device copies in any order. This order reads bytes that the copy
// has already written, so that tests notice the overlap.
void copyBytes(char* to, const char* from, size_t length) {
  if (to >= from + length || from >= to + length) {
    memcpy(to, from, length);
  } else if (to > from) {
    for (size_t at = 0; at < length; ++at) to[at] = from[at];
  } else if (to < from) {
    for (size_t at = length; at-- > 0;) to[at] = from[at];
  }
}

// Copies the source rows now, so that the caller may change them at once.
std::shared_ptr<char[]> stage(Copy& copy) {
  std::shared_ptr<char[]> staged(new char[copy.width * copy.height * copy.depth]);
  for (size_t index = 0; index < copy.height * copy.depth; ++index) {
    const size_t row = index % copy.height, slice = index / copy.height;
    memcpy(staged.get() + index * copy.width, copy.from.range.data + slice * copy.from.slice + row * copy.from.pitch,
           copy.width);
  }
  copy.from.range.data = staged.get();
  copy.from.pitch = copy.width;
  copy.from.slice = copy.width * copy.height;
  return staged;
}

}  // namespace

CUresult Copy::run() const {
  Held held;
  if (const CUresult status = held.add(from.range)) return status;
  if (const CUresult status = held.add(to.range)) return status;
  if (from.tiled || to.tiled) return runTiled(held);
  if (depth == 1 && (height == 1 || (from.pitch == width && to.pitch == width))) {
    copyBytes(to.range.data, from.range.data, width * height);
    return held.wrote(to.range, 0, width * height);
  }
  CUresult result = CUDA_SUCCESS;
  const bool isUpwards = to.range.data > from.range.data;
  for (size_t each = 0; each < height * depth && result == CUDA_SUCCESS; ++each) {
    const size_t index = isUpwards ? each : height * depth - 1 - each;
    const size_t row = index % height, slice = index / height;
    const size_t at = slice * to.slice + row * to.pitch;
    copyBytes(to.range.data + at, from.range.data + slice * from.slice + row * from.pitch, width);
    result = held.wrote(to.range, at, width);
  }
  return result;
}

// Unmapped tiles read as zero. Writes to unmapped tiles are dropped.
CUresult Copy::runTiled(Held& held) const {
  const auto fromTiles = from.tiled ? from.tiled->tiles() : nullptr, toTiles = to.tiled ? to.tiled->tiles() : nullptr;
  CUresult result = CUDA_SUCCESS;
  for (size_t index = 0; index < height * depth && result == CUDA_SUCCESS; ++index) {
    const size_t row = index % height, slice = index / height;
    for (size_t at = 0, length; at < width; at += length) {
      length = width - at;
      if (fromTiles) length = std::min(length, fromTiles->left(from.x + at));
      if (toTiles) length = std::min(length, toTiles->left(to.x + at));
      const char* const source = from.find(fromTiles.get(), at, row, slice);
      char* const target = to.find(toTiles.get(), at, row, slice);
      if (target == nullptr) continue;
      if (source == nullptr) memset(target, 0, length);
      else copyBytes(target, source, length);
    }
    if (!toTiles) result = held.wrote(to.range, slice * to.slice + row * to.pitch, width);
  }
  return result;
}

Operation operationOf(std::shared_ptr<Copy> copy) {
  Operation operation;
  operation.run = [copy = std::move(copy)] { return copy->run(); };
  return operation;
}

CUresult queueCopy(const std::shared_ptr<Stream>& stream, const Copy& described, bool isAsynchronous) {
  auto copy = std::make_shared<Copy>(described);
  const bool fromPageable = copy->from.range.isPageable();
  const bool toPageable = copy->to.range.isPageable();
  uint64_t sequence = 0;
  if (!isAsynchronous) {
    const bool onDevice = !fromPageable && !toPageable && !copy->from.range.isHost() && !copy->to.range.isHost();
    // A copy from device to device does not wait, even in its synchronous form.
    if (onDevice) return stream->runOrEnqueue(operationOf(std::move(copy)), sequence);
    return stream->runAndWait(operationOf(std::move(copy)));
  }
  if (toPageable) return stream->runAndWait(operationOf(std::move(copy)));
  if (!fromPageable) {
    stream->enqueue(operationOf(std::move(copy)));
    return CUDA_SUCCESS;
  }
  if (copy->width * copy->height * copy->depth > kLargestStaged)
    return stream->runAndWait(operationOf(std::move(copy)));
  auto staged = stage(*copy);
  Operation operation;
  operation.run = [copy = std::move(copy), staged = std::move(staged)] { return copy->run(); };
  stream->enqueue(std::move(operation));
  return CUDA_SUCCESS;
}

}  // namespace shoal
