// Symmetric memory.
#include <cstring>

#include "report.h"
#include "session.h"

using namespace shoal::nvshmem;

void* nvshmem_malloc(size_t size) { return require("nvshmem_malloc")->heap.allocate("nvshmem_malloc", size, 0); }

void* nvshmem_calloc(size_t count, size_t size) {
  const auto session = require("nvshmem_calloc");
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;  // more than any heap has
  void* made = session->heap.allocate("nvshmem_calloc", bytes, 0);
  if (made == nullptr) return nullptr;
  memset(made, 0, bytes);
  session->job->sync(session->job->everybody(kManagementSlot), "nvshmem_calloc");
  return made;
}

void* nvshmem_align(size_t alignment, size_t size) {
  const auto session = require("nvshmem_align");
  if (alignment == 0) return nullptr;
  if ((alignment & (alignment - 1)) != 0) alignment = 0;  // ignore an alignment that is not a power of two
  return session->heap.allocate("nvshmem_align", size, alignment);
}

void nvshmem_free(void* pointer) {
  const auto session = require("nvshmem_free");
  if (pointer == nullptr) return;
  InContext scope(*session);
  cuStreamSynchronize(session->stream);
  session->heap.free(pointer);
}

void* nvshmem_ptr(const void* pointer, int pe) {
  const auto session = running();
  if (!session || pe < 0 || pe >= session->job->size) return nullptr;
  const uint64_t offset = session->heap.offsetOf(pointer, 0);
  return offset == kNoOffset ? nullptr : session->heap.at(pe, offset);
}
