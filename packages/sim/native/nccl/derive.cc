// Communicators made from other communicators: split, shrink, grow.
#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "communicator.h"
#include "group.h"
#include "guard.h"
#include "init.h"
#include "problem.h"

using namespace shoal::nccl;

namespace {

enum class Derivation : uint32_t { split = 1, shrink = 2, grow = 3 };

// A rank's message to the other ranks about the new communicator.
struct DeriveRequest {
  Derivation kind;
  int32_t color, key;
  int32_t ranks;
  uint32_t hasIdentifier;
  Identifier identifier;
};
static_assert(sizeof(DeriveRequest) <= kExchangeBytes);

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t value = (a ^ b) * 0x9e3779b97f4a7c15u;
  value ^= value >> 29;
  value *= 0xbf58476d1ce4e5b9u;
  return value ^ value >> 32;
}

// Connects the ranks of the child under a key derived from the parent's key.
ncclResult_t connectChild(const char* function, Communicator& parent, Communicator& child, uint64_t salt,
                          const std::vector<int>& members) {
  const auto& origin = parent.sharedEndpoint();
  const auto& segment = origin->segment;
  const int ranks = static_cast<int>(members.size());
  const auto self = std::find(members.begin(), members.end(), parent.rank());
  std::string reason;
  auto own = Segment::join(std::shared_ptr<Rendezvous>(segment, &segment->rendezvous()), mix(segment->key(), salt) | 1,
                           ranks, reason);
  if (!own) return problem(ncclRemoteError, "%s: %s", function, reason.c_str());
  auto endpoint = std::make_shared<Endpoint>(std::move(own), ranks, static_cast<int>(self - members.begin()));
  endpoint->setOrigin(origin, members);
  return child.join(std::move(endpoint), nullptr, 1);
}

ncclResult_t exchange(const char* function, Communicator& parent, const DeriveRequest& own,
                      std::vector<DeriveRequest>& all, uint32_t* number = nullptr) {
  all.resize(static_cast<size_t>(parent.ranks()));
  if (const ncclResult_t result = parent.endpoint().exchange(&own, sizeof own, all.data(), function, number))
    return result;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].kind == own.kind) continue;
    return problem(ncclInvalidUsage, "%s: rank %zu makes another kind of communicator", function, rank);
  }
  return ncclSuccess;
}

ncclResult_t split(Communicator& parent, Communicator* child, int color, int key) {
  constexpr char function[] = "ncclCommSplit";
  if (const ncclResult_t result = parent.injectFault("ncclCommSplit")) return result;
  DeriveRequest own = {Derivation::split, color, key, 0, 0, {}};
  std::vector<DeriveRequest> all;
  uint32_t number = 0;
  if (const ncclResult_t result = exchange(function, parent, own, all, &number)) return result;
  if (child == nullptr) return ncclSuccess;
  std::vector<int> members;
  for (int rank = 0; rank < parent.ranks(); ++rank) {
    if (all[static_cast<size_t>(rank)].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return all[static_cast<size_t>(a)].key < all[static_cast<size_t>(b)].key; });
  return connectChild(function, parent, *child,
                      mix(static_cast<uint64_t>(Derivation::split) << 56 | number, static_cast<uint64_t>(color)),
                      members);
}

ncclResult_t shrink(Communicator& parent, Communicator& child, const std::set<int>& excluded) {
  if (const ncclResult_t result = parent.injectFault("ncclCommShrink")) return result;
  std::vector<int> members;
  uint64_t salt = static_cast<uint64_t>(Derivation::shrink) << 56 | parent.countShrinks(excluded);
  for (int rank = 0; rank < parent.ranks(); ++rank) {
    if (excluded.count(rank) == 0) members.push_back(rank);
    else salt = mix(salt, static_cast<uint64_t>(rank) + 1);
  }
  return connectChild("ncclCommShrink", parent, child, salt, members);
}

// For an existing rank. One of them has the unique id and passes it to the others.
ncclResult_t grow(Communicator& parent, Communicator& child, int ranks, const ncclUniqueId* id) {
  constexpr char function[] = "ncclCommGrow";
  if (const ncclResult_t result = parent.injectFault("ncclCommGrow")) return result;
  DeriveRequest own = {Derivation::grow, 0, 0, ranks, id != nullptr, {}};
  if (id != nullptr) memcpy(&own.identifier, id->internal, sizeof own.identifier);
  std::vector<DeriveRequest> all;
  if (const ncclResult_t result = exchange(function, parent, own, all)) return result;
  const DeriveRequest* root = nullptr;
  std::vector<int> ranksThere(static_cast<size_t>(ranks), -1);
  for (int rank = 0; rank < parent.ranks(); ++rank) {
    const DeriveRequest& said = all[static_cast<size_t>(rank)];
    ranksThere[static_cast<size_t>(rank)] = rank;
    if (said.ranks != ranks) {
      return problem(ncclInvalidArgument, "%s: rank %d grows to %d ranks, rank %d to %d", function, parent.rank(),
                     ranks, rank, said.ranks);
    }
    if (said.hasIdentifier != 0 && root != nullptr)
      return problem(ncclInvalidUsage, "%s: more than one rank came with a unique id", function);
    if (said.hasIdentifier != 0) root = &said;
  }
  if (root == nullptr) return problem(ncclInvalidUsage, "%s: no rank came with a unique id", function);
  const ncclResult_t result =
      connectRanks(child, function, root->identifier, parent.sharedEndpoint(), ranksThere, ranks, parent.rank(), 1);
  if (result == ncclSuccess && id != nullptr) parent.consumeGrowIdentifier();
  return result;
}

Config configOf(const Communicator& parent, const ncclConfig_t* given) {
  return given == nullptr ? parent.config : Config();
}

// Runs `make` for the new communicator, if there is one, and writes its handle. A blocking call, or one without a
// parent, writes the handle at once; otherwise it is written when the communicator is ready.
template <class Make>
ncclResult_t derive(std::shared_ptr<Communicator> parent, const Place& place, const Config* config, ncclComm_t* out,
                    Make make) {
  std::shared_ptr<Communicator> child = config == nullptr ? nullptr : Communicator::create(place, *config);
  const ncclComm_t handle = child == nullptr ? nullptr : child->handle();
  const bool isLate = parent != nullptr && !parent->config.isBlocking;
  *out = isLate ? nullptr : handle;
  Job job;
  job.saysSuccess = isLate;
  if (parent != nullptr) job.communicators.push_back(parent);
  if (child != nullptr) job.communicators.push_back(child);
  job.run = [=] {
    const ncclResult_t result = make(parent.get(), child.get());
    // If there is no new communicator, the caller's handle is null already.
    if (!isLate || child == nullptr || result != ncclSuccess || parent->handOut([&] { *out = handle; })) return result;
    child->end(true);
    return ncclInternalError;
  };
  job.undo = [=] {
    *out = nullptr;
    if (child != nullptr) child->end(true);
  };
  return submitJob(std::move(job));
}

}  // namespace

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* given) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclCommSplit";
    std::shared_ptr<Communicator> parent;
    if (const ncclResult_t result = Communicator::findParent(comm, function, parent)) return noteError(result);
    if (newcomm == nullptr) return noteError(problem(ncclInvalidArgument, "%s: newcomm is NULL", function));
    if (color < NCCL_SPLIT_NOCOLOR) return noteError(problem(ncclInvalidArgument, "%s: color is %d", function, color));
    Config config = configOf(*parent, given);
    if (const ncclResult_t result = readConfig(given, config)) return noteError(result);
    const bool hasChild = color != NCCL_SPLIT_NOCOLOR;
    const Place place = hasChild ? placeOf(*parent) : Place();
    return noteError(
        derive(parent, place, hasChild ? &config : nullptr, newcomm,
               [color, key](Communicator* from, Communicator* child) { return split(*from, child, color, key); }));
  });
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
                            ncclConfig_t* given, int shrinkFlags) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclCommShrink";
    std::shared_ptr<Communicator> parent;
    const bool aborts = shrinkFlags == NCCL_SHRINK_ABORT;
    if (const ncclResult_t result = aborts ? Communicator::findSettled(comm, function, parent)
                                           : Communicator::findParent(comm, function, parent)) {
      return noteError(result);
    }
    if (newcomm == nullptr) return noteError(problem(ncclInvalidArgument, "%s: newcomm is NULL", function));
    if (shrinkFlags != NCCL_SHRINK_DEFAULT && !aborts)
      return noteError(problem(ncclInvalidArgument, "%s: flags are %d", function, shrinkFlags));
    if (parent->sharedEndpoint() == nullptr || parent->state() == Communicator::State::finalised) {
      return noteError(
          problem(ncclInvalidUsage, "%s: the communicator has been finalized, or never came up", function));
    }
    if (excludeRanksList == nullptr || excludeRanksCount < 1) {
      return noteError(
          problem(ncclInvalidArgument, "%s: excludeRanksList is NULL, or has %d ranks", function, excludeRanksCount));
    }
    std::set<int> excluded;
    for (int index = 0; index < excludeRanksCount; ++index) {
      const int rank = excludeRanksList[index];
      if (rank < 0 || rank >= parent->ranks() || !excluded.insert(rank).second) {
        return noteError(problem(ncclInvalidArgument, "%s: rank %d is excluded twice, or the communicator has it not",
                                 function, rank));
      }
    }
    if (excluded.count(parent->rank()) != 0) {
      return noteError(problem(ncclInvalidArgument, "%s: rank %d excludes itself; such ranks do not call it", function,
                               parent->rank()));
    }
    Config config = configOf(*parent, given);
    if (const ncclResult_t result = readConfig(given, config)) return noteError(result);
    return noteError(
        derive(parent, placeOf(*parent), &config, newcomm, [excluded, aborts](Communicator* from, Communicator* child) {
          if (aborts) from->revoke();
          return shrink(*from, *child, excluded);
        }));
  });
}

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findReady(comm, "ncclCommGetUniqueId", communicator)) return result;
    if (uniqueId == nullptr) return problem(ncclInvalidArgument, "ncclCommGetUniqueId: uniqueId is NULL");
    return communicator->makeGrowIdentifier(*uniqueId);
  });
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm,
                          ncclConfig_t* given) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclCommGrow";
    if (newcomm == nullptr) return noteError(problem(ncclInvalidArgument, "%s: newcomm is NULL", function));
    if (nRanks < 1 || nRanks > kMaxRanks) {
      return noteError(problem(ncclInvalidArgument, "%s: nRanks is %d, the software device has 1 to %d ranks", function,
                               nRanks, kMaxRanks));
    }
    Identifier identifier = {};
    if (uniqueId != nullptr) {
      if (const ncclResult_t result = readIdentifier(*uniqueId, identifier)) return noteError(result);
    }
    if (comm == nullptr) {
      if (uniqueId == nullptr)
        return noteError(problem(ncclInvalidArgument, "%s: a new rank needs a unique id", function));
      if (rank < 0 || rank >= nRanks)
        return noteError(problem(ncclInvalidArgument, "%s: rank is %d of %d", function, rank, nRanks));
      Config config;
      if (const ncclResult_t result = readConfig(given, config)) return noteError(result);
      Place place;
      if (const ncclResult_t result = findPlace(place)) return noteError(result);
      return noteError(derive(nullptr, place, &config, newcomm, [=](Communicator*, Communicator* child) {
        return connectRanks(*child, function, identifier, nullptr, {}, nRanks, rank, 1);
      }));
    }
    std::shared_ptr<Communicator> parent;
    if (const ncclResult_t result = Communicator::findReady(comm, function, parent)) return noteError(result);
    if (rank != -1)
      return noteError(problem(ncclInvalidArgument,
                               "%s: a rank that is there already keeps its number, so rank must be -1, not %d",
                               function, rank));
    if (nRanks <= parent->ranks()) {
      return noteError(problem(ncclInvalidArgument, "%s: nRanks is %d, the communicator has %d already", function,
                               nRanks, parent->ranks()));
    }
    if (uniqueId != nullptr && !parent->isGrowIdentifier(identifier.key)) {
      return noteError(problem(
          ncclInvalidArgument,
          "%s: the unique id does not come from ncclCommGetUniqueId of this communicator, or was used", function));
    }
    Config config = configOf(*parent, given);
    if (const ncclResult_t result = readConfig(given, config)) return noteError(result);
    ncclUniqueId id = {};
    if (uniqueId != nullptr) id = *uniqueId;
    return noteError(derive(parent, placeOf(*parent), &config, newcomm,
                            [nRanks, id, isRoot = uniqueId != nullptr](Communicator* from, Communicator* child) {
                              return grow(*from, *child, nRanks, isRoot ? &id : nullptr);
                            }));
  });
}
