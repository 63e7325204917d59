// Transfers between a PE's memory and local memory.
#pragma once

#include "session.h"

namespace shoal::nvshmem {

// The peer's address that corresponds to an address of this PE. Ends the process if the PE or the address is wrong.
char* peerAddress(const Session& session, const char* function, const void* symmetric, size_t bytes, int pe);

// The address of one element, which must be aligned so that the CPU can write it at once.
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

// A blocking move returns when it has completed. nvshmem_quiet waits for the others.
void move(const Move& wanted, bool isBlocking);
void moveOnStream(const Move& wanted, cudaStream_t stream);

}  // namespace shoal::nvshmem
