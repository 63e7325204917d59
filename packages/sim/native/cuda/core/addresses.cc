#include "addresses.h"

#include <sys/mman.h>

#include "state.h"

namespace shoal {

namespace {

constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

uint64_t reserveAt(uint64_t address, size_t size) {
  void* at = mmap(reinterpret_cast<void*>(address), size, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) return 0;
  // Kernels that do not know the flag may choose another address.
  if (reinterpret_cast<uint64_t>(at) == address) return address;
  munmap(at, size);
  return 0;
}

}  // namespace

uint64_t reserveAddresses(size_t size, size_t alignment, uint64_t hint) {
  uint64_t start = hint != 0 && hint % alignment == 0 ? reserveAt(hint, size) : 0;
  if (start == 0) {
    size_t length = 0;
    if (__builtin_add_overflow(size, alignment, &length)) return 0;
    void* at = mmap(nullptr, length, PROT_NONE, kFlags, -1, 0);
    if (at == MAP_FAILED) return 0;
    const auto first = reinterpret_cast<uint64_t>(at);
    start = (first + alignment - 1) & ~(uint64_t{alignment} - 1);
    if (start != first) munmap(at, start - first);
    if (start + size != first + length) munmap(reinterpret_cast<void*>(start + size), first + length - start - size);
  }
  state().addresses.add(start, size);
  return start;
}

void releaseAddresses(uint64_t base, size_t size) {
  state().addresses.remove(base);
  munmap(reinterpret_cast<void*>(base), size);
}

void emptyAddresses(uint64_t base, size_t size) {
  mmap(reinterpret_cast<void*>(base), size, PROT_NONE, kFlags | MAP_FIXED, -1, 0);
}

}  // namespace shoal
