// Moving bytes between a PE's memory and local memory.
#pragma once

#include "session.h"

namespace shoal::nvshmem {

// The address of a peer's memory that corresponds to one of this PE; ends the process when the PE or the address is
// wrong.
char* peerAddress(const Session& session, const char* function, const void* symmetric, size_t bytes, int pe);

// The same for one element, which must lie where the processor can change it at once.
char* elementAddress(const Session& session, const char* function, const void* symmetric, size_t bytes, int pe);

enum class Direction { put, get };
struct Move {
  const char* function;
  Direction direction;
  void* destination;
  const void* source;
  size_t elements;
  size_t elementBytes;
  int pe;
  ptrdiff_t destinationStride = 1;
  ptrdiff_t sourceStride = 1;
};

// Blocking moves return when they are done; the others are waited for by nvshmem_quiet.
void move(const Move& wanted, bool isBlocking);
void moveOnStream(const Move& wanted, cudaStream_t stream);

}  // namespace shoal::nvshmem
