#include "collective.h"

#include <algorithm>
#include <cstring>

#include "report.h"

namespace shoal::nvshmem {

namespace {

struct Sizes {
  size_t part;  // bytes that one PE contributes to another
  size_t destination;
  size_t source;
};

bool sizesOf(const Collective& wanted, size_t members, Sizes& sizes) {
  if (__builtin_mul_overflow(wanted.count, wanted.elementBytes, &sizes.part)) return false;
  size_t all = 0;
  if (__builtin_mul_overflow(sizes.part, members, &all)) return false;
  const bool isGathering = wanted.kind == CollectiveKind::fcollect || wanted.kind == CollectiveKind::allToAll;
  const bool isScattering = wanted.kind == CollectiveKind::reduceScatter || wanted.kind == CollectiveKind::allToAll;
  sizes.destination = isGathering ? all : sizes.part;
  sizes.source = isScattering ? all : sizes.part;
  return true;
}

// Writes the data that this PE receives to `out`.
void compute(const Session& session, const Team& team, const Collective& wanted, const Sizes& sizes,
             const std::vector<Description>& all, char* out) {
  const auto& members = team.group.members;
  const auto own = static_cast<size_t>(team.group.own);
  const auto sourceOf = [&](size_t member) { return session.heap.at(members[member], all[member].source); };
  switch (wanted.kind) {
    case CollectiveKind::broadcast: {
      const char* from = sourceOf(static_cast<size_t>(wanted.root));
      if (from != out) memcpy(out, from, sizes.part);
      return;
    }
    case CollectiveKind::fcollect:
      for (size_t member = 0; member < members.size(); ++member)
        memcpy(out + member * sizes.part, sourceOf(member), sizes.part);
      return;
    case CollectiveKind::allToAll:
      for (size_t member = 0; member < members.size(); ++member)
        memcpy(out + member * sizes.part, sourceOf(member) + own * sizes.part, sizes.part);
      return;
    case CollectiveKind::reduce:
    case CollectiveKind::reduceScatter: {
      const size_t skipped = wanted.kind == CollectiveKind::reduceScatter ? own * sizes.part : 0;
      std::vector<const void*> sources;
      for (size_t member = 0; member < members.size(); ++member) sources.push_back(sourceOf(member) + skipped);
      return wanted.combine(out, sources.data(), sources.size(), wanted.count);
    }
  }
}

bool doOverlap(uint64_t left, size_t leftBytes, uint64_t right, size_t rightBytes) {
  return leftBytes != 0 && rightBytes != 0 && left < right + rightBytes && right < left + leftBytes;
}

int runNow(const Session& session, const Team& team, const Collective& wanted) {
  Job& job = *session.job;
  Sizes sizes = {};
  bool isFine = sizesOf(wanted, team.group.members.size(), sizes);
  isFine = isFine && (wanted.kind != CollectiveKind::broadcast ||
                      (wanted.root >= 0 && wanted.root < static_cast<int>(team.group.members.size())));
  uint64_t destination = 0, source = 0;
  if (isFine && wanted.count != 0) {
    destination = session.heap.offsetOf(wanted.destination, sizes.destination);
    source = session.heap.offsetOf(wanted.source, sizes.source);
    isFine = destination != kNoOffset && source != kNoOffset;
  }
  const Description own{static_cast<uint32_t>(wanted.kind),
                        wanted.type,
                        wanted.operation,
                        wanted.root,
                        wanted.count,
                        destination,
                        source,
                        isFine};
  TeamSlot& slot = job.control->team(team.group.slot);
  slot.descriptions[team.group.own] = own;
  if (!job.sync(team.group, wanted.function)) return NVSHMEMX_ERROR_INTERNAL;
  const std::vector<Description> all(slot.descriptions, slot.descriptions + team.group.members.size());
  int status = NVSHMEMX_SUCCESS;
  bool isStaged = false;
  for (size_t member = 0; member < all.size(); ++member) {
    const Description& each = all[member];
    if (each.kind != own.kind || each.type != own.type || each.operation != own.operation || each.root != own.root ||
        each.count != own.count) {
      report("%s: the PEs of the team ask for different things", wanted.function);
      status = NVSHMEMX_ERROR_SYMMETRY;
      break;
    }
    if (each.value != 1) {
      report(
          "%s: PE %d of the team gave an address that is not symmetric memory, a count that is too large, or a root "
          "that is not there",
          wanted.function, static_cast<int>(member));
      status = NVSHMEMX_ERROR_INVALID_VALUE;
      break;
    }
    isStaged = isStaged || doOverlap(each.destination, sizes.destination, each.source, sizes.source);
  }
  if (status == NVSHMEMX_SUCCESS && wanted.count != 0) {
    char* out = session.heap.at(job.pe, destination);
    if (!isStaged) {
      compute(session, team, wanted, sizes, all, out);
    } else {
      // The operation overwrites the source of a PE, so all PEs read before any PE writes.
      std::vector<char> staged(sizes.destination);
      compute(session, team, wanted, sizes, all, staged.data());
      if (!job.sync(team.group, wanted.function)) return NVSHMEMX_ERROR_INTERNAL;
      memcpy(out, staged.data(), staged.size());
    }
  }
  return job.sync(team.group, wanted.function) ? status : NVSHMEMX_ERROR_INTERNAL;
}

}  // namespace

int run(const Collective& wanted) {
  const auto session = require(wanted.function);
  const auto team = session->teams.find(wanted.team);
  return team ? runNow(*session, *team, wanted) : NVSHMEMX_ERROR_INVALID_VALUE;
}

int runOnStream(const Collective& wanted, cudaStream_t stream) {
  const auto session = require(wanted.function);
  const auto team = session->teams.find(wanted.team);
  Sizes sizes = {};
  if (!team || !sizesOf(wanted, team->group.members.size(), sizes)) return NVSHMEMX_ERROR_INVALID_VALUE;
  std::vector<ShoalSimRange> ranges;
  if (wanted.count != 0) {
    ranges.push_back({reinterpret_cast<CUdeviceptr>(wanted.destination), sizes.destination, 1});
    ranges.push_back({reinterpret_cast<CUdeviceptr>(wanted.source), sizes.source, 0});
  }
  auto body = [session, team, wanted] {
    return runNow(*session, *team, wanted) == NVSHMEMX_SUCCESS ? CUDA_SUCCESS : kAbandoned;
  };
  const CUresult status = enqueue(session, wanted.function, stream, std::move(body), ranges);
  if (status == CUDA_SUCCESS) return NVSHMEMX_SUCCESS;
  return status == CUDA_ERROR_INVALID_VALUE ? NVSHMEMX_ERROR_INVALID_VALUE : NVSHMEMX_ERROR_INTERNAL;
}

}  // namespace shoal::nvshmem

using namespace shoal::nvshmem;

// The types by number. The numbers are equal in every process, because all run the same library.
namespace {
enum : uint32_t {
#define SHOAL_TYPE(name, Type) type_##name,
  SHOAL_NVSHMEM_RMA_TYPES(SHOAL_TYPE)
#undef SHOAL_TYPE
      type_mem,
};
}  // namespace

#define SHOAL_EXCHANGE(suffix, Type, which, number, bytes)                                                         \
  int nvshmem_##suffix(nvshmem_team_t team, Type* dest, const Type* source, size_t count) {                        \
    return run({"nvshmem_" #suffix, CollectiveKind::which, number, bytes, 0, nullptr, team, dest, source, count}); \
  }                                                                                                                \
  int nvshmemx_##suffix##_on_stream(nvshmem_team_t team, Type* dest, const Type* source, size_t count,             \
                                    cudaStream_t stream) {                                                         \
    return runOnStream({"nvshmemx_" #suffix "_on_stream", CollectiveKind::which, number, bytes, 0, nullptr, team,  \
                        dest, source, count},                                                                      \
                       stream);                                                                                    \
  }
#define SHOAL_BROADCAST(suffix, Type, number, bytes)                                                                  \
  int nvshmem_##suffix(nvshmem_team_t team, Type* dest, const Type* source, size_t count, int root) {                 \
    return run(                                                                                                       \
        {"nvshmem_" #suffix, CollectiveKind::broadcast, number, bytes, 0, nullptr, team, dest, source, count, root}); \
  }                                                                                                                   \
  int nvshmemx_##suffix##_on_stream(nvshmem_team_t team, Type* dest, const Type* source, size_t count, int root,      \
                                    cudaStream_t stream) {                                                            \
    return runOnStream({"nvshmemx_" #suffix "_on_stream", CollectiveKind::broadcast, number, bytes, 0, nullptr, team, \
                        dest, source, count, root},                                                                   \
                       stream);                                                                                       \
  }
#define SHOAL_EXCHANGES(name, Type)                                          \
  SHOAL_EXCHANGE(name##_alltoall, Type, allToAll, type_##name, sizeof(Type)) \
  SHOAL_EXCHANGE(name##_fcollect, Type, fcollect, type_##name, sizeof(Type)) \
  SHOAL_BROADCAST(name##_broadcast, Type, type_##name, sizeof(Type))
SHOAL_NVSHMEM_RMA_TYPES(SHOAL_EXCHANGES)
SHOAL_EXCHANGE(alltoallmem, void, allToAll, type_mem, 1)
SHOAL_EXCHANGE(fcollectmem, void, fcollect, type_mem, 1)
SHOAL_BROADCAST(broadcastmem, void, type_mem, 1)
