// Rows of bytes that are copied: what lies where, and how streams carry a copy out.
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
  size_t pitch = 0;              // from row to row
  size_t slice = 0;              // from slice to slice
  std::shared_ptr<Array> tiled;  // an array to which memory was mapped, and where in it the rows begin
  size_t x = 0, y = 0, z = 0;

  // Byte `at` of a row; null where no memory is mapped.
  char* find(const Tiles* tiles, size_t at, size_t row, size_t index) const {
    return tiles != nullptr ? tiles->find(x + at, y + row, z + index) : range.data + index * slice + row * pitch + at;
  }
};

// `depth` slices of `height` rows of `width` bytes; a plain copy is one row.
struct Copy {
  CopyRows from, to;
  size_t width = 0;
  size_t height = 1;
  size_t depth = 1;
  std::shared_ptr<Context> toUser, fromUser;  // whose rights count, where that is not the stream's context

  CUresult run() const;

 private:
  CUresult runTiled(Held& held) const;
};

Operation operationOf(std::shared_ptr<Copy> copy);

// Copies on the stream. A synchronous copy between memories of devices does not wait for its end.
CUresult queueCopy(const std::shared_ptr<Stream>& stream, const Copy& described, bool isAsynchronous);

}  // namespace shoal
