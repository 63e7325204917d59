// Copies of rows: where the source and the target are, and how a stream executes the copy.
#pragma once

#include <memory>

#include "array/array.h"
#include "core/allocation.h"
#include "core/context.h"
#include "core/stream.h"

namespace shoal {

// One end of a copy.
struct CopyRows {
  MemoryRange range;
  size_t pitch = 0;              // distance between rows
  size_t slice = 0;              // distance between slices
  std::shared_ptr<Array> tiled;  // an array with mapped memory; x, y and z are the first row's position in it
  size_t x = 0, y = 0, z = 0;

  // The address of byte `at` of a row, or null if no memory is mapped.
  char* find(const Tiles* tiles, size_t at, size_t row, size_t index) const {
    return tiles != nullptr ? tiles->find(x + at, y + row, z + index) : range.data + index * slice + row * pitch + at;
  }
};

// `depth` slices of `height` rows of `width` bytes. A plain copy is a single row.
struct Copy {
  CopyRows from, to;
  size_t width = 0;
  size_t height = 1;
  size_t depth = 1;
  std::shared_ptr<Context> toUser, fromUser;  // contexts whose access rights apply, if not the stream's context

  CUresult run() const;

 private:
  CUresult runTiled(Held& held) const;
};

Operation operationOf(std::shared_ptr<Copy> copy);

// Copies on the stream. A synchronous copy from device to device returns without waiting for its completion.
CUresult queueCopy(const std::shared_ptr<Stream>& stream, const Copy& described, bool isAsynchronous);

}  // namespace shoal
