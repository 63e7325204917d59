// Completion and ordering of a PE's operations, and synchronization with other PEs.
#include "session.h"

using namespace shoal::nvshmem;

namespace {

void complete(const Session& session, const char* function) {
  InContext scope(session);
  mustSucceed(session, cuStreamSynchronize(session.stream), function);
}

// Returns an nvshmemx_status.
int sync(const char* function, nvshmem_team_t handle, bool isCompleting) {
  const auto session = require(function);
  const auto team = session->teams.find(handle);
  if (!team) return NVSHMEMX_ERROR_INVALID_VALUE;
  if (isCompleting) complete(*session, function);
  return session->job->sync(team->group, function) ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INTERNAL;
}

int syncOnStream(const char* function, nvshmem_team_t handle, cudaStream_t stream) {
  const auto session = require(function);
  const auto team = session->teams.find(handle);
  if (!team) return NVSHMEMX_ERROR_INVALID_VALUE;
  auto body = [job = session->job, team, function] {
    return job->sync(team->group, function) ? CUDA_SUCCESS : kAbandoned;
  };
  return enqueue(session, function, stream, std::move(body)) == CUDA_SUCCESS ? NVSHMEMX_SUCCESS
                                                                             : NVSHMEMX_ERROR_INTERNAL;
}

}  // namespace

void nvshmem_quiet(void) { complete(*require("nvshmem_quiet"), "nvshmem_quiet"); }
// No fence is needed, because a PE's operations always run in call order.
void nvshmem_fence(void) { require("nvshmem_fence"); }
// Earlier work of a stream is complete when the stream reaches this call.
void nvshmemx_quiet_on_stream(cudaStream_t stream) {
  constexpr char function[] = "nvshmemx_quiet_on_stream";
  const auto session = require(function);
  mustSucceed(*session, enqueue(session, function, stream, [] { return CUDA_SUCCESS; }), function);
}

int nvshmem_barrier(nvshmem_team_t team) { return sync("nvshmem_barrier", team, true); }
void nvshmem_barrier_all(void) { sync("nvshmem_barrier_all", NVSHMEM_TEAM_WORLD, true); }
int nvshmem_team_sync(nvshmem_team_t team) { return sync("nvshmem_team_sync", team, false); }
void nvshmem_sync_all(void) { sync("nvshmem_sync_all", NVSHMEM_TEAM_WORLD, false); }

int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t stream) {
  return syncOnStream("nvshmemx_barrier_on_stream", team, stream);
}
void nvshmemx_barrier_all_on_stream(cudaStream_t stream) {
  syncOnStream("nvshmemx_barrier_all_on_stream", NVSHMEM_TEAM_WORLD, stream);
}
int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t stream) {
  return syncOnStream("nvshmemx_team_sync_on_stream", team, stream);
}
void nvshmemx_sync_all_on_stream(cudaStream_t stream) {
  syncOnStream("nvshmemx_sync_all_on_stream", NVSHMEM_TEAM_WORLD, stream);
}
