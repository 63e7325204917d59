// Completion and order of what a PE has asked for, and meeting all others.
#include "session.h"

using namespace shoal::nvshmem;

namespace {

void complete(const Session& session, const char* function) {
  InContext scope(session);
  mustSucceed(cuStreamSynchronize(session.stream), function);
}

}  // namespace

void nvshmem_quiet(void) { complete(*require("nvshmem_quiet"), "nvshmem_quiet"); }

// What one PE does to another happens in the order in which it was asked for.
void nvshmem_fence(void) { require("nvshmem_fence"); }

void nvshmem_barrier_all(void) {
  const auto session = require("nvshmem_barrier_all");
  complete(*session, "nvshmem_barrier_all");
  session->job->meet(session->job->everybody(kWorldSlot), "nvshmem_barrier_all");
}

void nvshmem_sync_all(void) {
  const auto session = require("nvshmem_sync_all");
  session->job->meet(session->job->everybody(kWorldSlot), "nvshmem_sync_all");
}
