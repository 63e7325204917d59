// Registration of local buffers.
#include "report.h"
#include "session.h"

using namespace shoal::nvshmem;

int nvshmemx_buffer_register(void* address, size_t length) {
  const auto session = require("nvshmemx_buffer_register");
  const auto start = reinterpret_cast<uint64_t>(address);
  uint64_t end = 0;
  if (address == nullptr) return NVSHMEMX_ERROR_INTERNAL;
  if (length == 0 || __builtin_add_overflow(start, length, &end)) return NVSHMEMX_ERROR_INVALID_VALUE;
  return session->registered.add(start, end) ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INVALID_VALUE;
}

int nvshmemx_buffer_unregister(void* address) {
  const auto session = require("nvshmemx_buffer_unregister");
  return session->registered.remove(reinterpret_cast<uint64_t>(address)) ? NVSHMEMX_SUCCESS
                                                                         : NVSHMEMX_ERROR_INVALID_VALUE;
}

void nvshmemx_buffer_unregister_all(void) { require("nvshmemx_buffer_unregister_all")->registered.clear(); }

void* nvshmemx_buffer_register_symmetric(void* address, size_t size, int) {
  const auto session = require("nvshmemx_buffer_register_symmetric");
  InContext scope(*session);
  return session->heap.add(address, size);
}

int nvshmemx_buffer_unregister_symmetric(void* mapped, size_t size) {
  const auto session = require("nvshmemx_buffer_unregister_symmetric");
  InContext scope(*session);
  const uint64_t offset = session->heap.reservedOffsetOf(mapped);
  const int status = session->heap.remove(mapped, size);
  if (status == 0) session->multicast.forgetPart(offset);
  return status;
}
