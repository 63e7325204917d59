#include "endpoint.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "../shared/timeout.h"
#include "problem.h"

namespace shoal::nccl {

namespace {

uint64_t ownToken() {
  static const uint64_t token = [] {
    std::random_device random;
    return (static_cast<uint64_t>(random()) << 32 | random()) | 1;
  }();
  return token;
}

}  // namespace

uint64_t timeoutNanoseconds() {
  return shoal::timeoutNanoseconds([](const char* text) { fprintf(stderr, "shoal: %s\n", text); });
}

void Endpoint::setOrigin(std::shared_ptr<Endpoint> origin, std::vector<int> ranksThere) {
  origin_ = std::move(origin);
  ranksThere_ = std::move(ranksThere);
}

ncclResult_t Endpoint::attach(int device, int identifiers) {
  std::lock_guard lock(mutex_);
  if (isAborted()) return ncclInternalError;
  Control& control = segment->control();
  const auto agree = [](std::atomic<uint32_t>& word, int own) {
    uint32_t known = 0;
    return word.compare_exchange_strong(known, static_cast<uint32_t>(own)) ? own : static_cast<int>(known);
  };
  if (const int known = agree(control.ranks, ranks); known != ranks) {
    return problem(ncclInvalidArgument, "rank %d asks for %d ranks, another rank of this unique id asked for %d", rank,
                   ranks, known);
  }
  if (const int known = agree(control.identifiers, identifiers); known != identifiers) {
    return problem(ncclInvalidArgument, "rank %d came with %d unique ids, another rank with %d", rank, identifiers,
                   known);
  }
  RankSlot& slot = segment->slot(rank);
  if (segment->isShared() && !segment->lockRank(rank)) {
    return problem(ncclInvalidUsage, "rank %d is taken twice under the same unique id", rank);
  }
  if (slot.state.load() != static_cast<uint32_t>(RankState::absent)) {
    return problem(ncclInvalidUsage, "rank %d has already been used with this unique id", rank);
  }
  slot.device = device;
  slot.process = static_cast<int32_t>(getpid());
  slot.processToken = ownToken();
  slot.state = static_cast<uint32_t>(RankState::attached);
  isAttached_ = true;
  return ncclSuccess;
}

void Endpoint::arrive() {
  segment->control().attached.fetch_add(1);
  futexWakeAll(segment->control().attached);
}

ncclResult_t Endpoint::waitForAll() {
  Control& control = segment->control();
  const Wait wait = {everybody(), "initialization"};
  const ncclResult_t met =
      waitUntil(control.attached, wait, [&] { return control.attached.load() == static_cast<uint32_t>(ranks); });
  origin_.reset();
  if (met != ncclSuccess) return met == failure() ? problem(met, "%s", control.failureText) : met;
  segment->conclude();
  for (int other = 0; other < ranks; ++other) {
    isDirect = isDirect && isInThisProcess(other);
    for (int before = 0; before < other; ++before) {
      if (segment->slot(before).device == segment->slot(other).device) {
        return problem(ncclInvalidUsage, "rank %d and rank %d are both on CUDA device %d", before, other,
                       segment->slot(other).device.load());
      }
    }
  }
  for (int other = 0; other < ranks; ++other) {
    // A rank that left properly was ready before. A rank that aborted was attached, but cannot take part.
    const char* how = nullptr;
    const bool hasLeft = segment->slot(other).state.load() == static_cast<uint32_t>(RankState::left);
    if (other == rank || hasLeft || !isGone(other, false, how) || strcmp(how, "left the communicator") == 0) continue;
    const ncclResult_t gone = fail(ncclRemoteError, "rank " + std::to_string(other) + " " + how + " in initialization");
    return problem(gone, "%s", control.failureText);
  }
  std::string reason;
  if (!isDirect && !segment->reserveStaging(reason)) return fail(ncclSystemError, reason);
  return ncclSuccess;
}

void Endpoint::leave(RankState state) {
  {
    std::lock_guard lock(mutex_);
    if (!isAttached_) return;
    isAttached_ = false;
    segment->slot(rank).state = static_cast<uint32_t>(state);
  }
  wakeAll();
}

void Endpoint::revoke() {
  isRevoked_ = true;
  {
    std::lock_guard lock(mutex_);
    if (isAttached_) segment->slot(rank).state = static_cast<uint32_t>(RankState::revoked);
  }
  wakeAll();
}

std::string Endpoint::whyStopped() const {
  return "rank " + std::to_string(rank) + (isAborted() ? " aborted the communicator" : " revoked the communicator");
}

bool Endpoint::isInThisProcess(int other) const { return segment->slot(other).processToken.load() == ownToken(); }

ncclResult_t Endpoint::barrier() {
  Control& control = segment->control();
  if (isStopped()) return ncclInternalError;
  if (const ncclResult_t failed = failure()) return failed;
  const uint32_t generation = control.generation.load();
  if (control.arrived.fetch_add(1) + 1 == static_cast<uint32_t>(ranks)) {
    control.arrived = 0;
    control.generation.fetch_add(1);
    futexWakeAll(control.generation);
    return ncclSuccess;
  }
  return waitUntil(control.generation, {everybody(), "a collective"},
                   [&] { return control.generation.load() != generation; });
}

// A rank's words are overwritten two exchanges later. By that time, all ranks have taken part in the exchange between,
// and have therefore read them.
ncclResult_t Endpoint::exchange(const void* words, size_t bytes, void* all, const char* what, uint32_t* numberOut) {
  std::lock_guard lock(exchanging_);
  const uint32_t number = ++exchanges_;
  if (numberOut != nullptr) *numberOut = number;
  RankSlot& own = segment->slot(rank);
  memcpy(own.words[number & 1], words, bytes);
  own.spoken = number;
  Control& control = segment->control();
  control.spoken.fetch_add(1);
  futexWakeAll(control.spoken);
  const auto hasSpoken = [&](int other) {
    return static_cast<int32_t>(segment->slot(other).spoken.load() - number) >= 0;
  };
  for (int other = 0; other < ranks; ++other) {
    const Wait wait = {uint64_t{1} << other, what, false};
    if (const ncclResult_t result = waitUntil(control.spoken, wait, [&] { return hasSpoken(other); })) {
      return isAborted() ? result : problem(result, "%s", control.failureText);
    }
    memcpy(static_cast<char*>(all) + static_cast<size_t>(other) * bytes, segment->slot(other).words[number & 1], bytes);
  }
  return ncclSuccess;
}

bool Endpoint::isGone(int other, bool isOfStreams, const char*& how) const {
  switch (static_cast<RankState>(segment->slot(other).state.load())) {
    case RankState::absent: return false;
    case RankState::left: how = "left the communicator"; return true;
    case RankState::aborted: how = "aborted the communicator"; return true;
    case RankState::revoked:
      if (!isOfStreams) break;
      how = "revoked the communicator";
      return true;
    case RankState::attached: break;
  }
  if (!segment->isShared() || segment->isRankLocked(other)) return false;
  // The rank may have left properly between the two checks.
  const auto now = static_cast<RankState>(segment->slot(other).state.load());
  how = now == RankState::left || now == RankState::aborted ? "left the communicator"
                                                            : "ended without leaving the communicator";
  return true;
}

// A rank that has not attached yet is not missing, unless it is gone from the parent communicator.
int Endpoint::findMissing(const Wait& wait, const char*& how) const {
  for (int other = 0; other < ranks; ++other) {
    if (other == rank || (wait.concerns >> other & 1) == 0) continue;
    if (isGone(other, wait.isOfStreams, how)) return other;
    const int there = origin_ == nullptr ? -1 : ranksThere_[static_cast<size_t>(other)];
    if (there < 0 || there == origin_->rank || !origin_->isGone(there, false, how)) continue;
    if (segment->slot(other).state.load() == static_cast<uint32_t>(RankState::absent)) return other;
  }
  return -1;
}

int Endpoint::findKilled() {
  constexpr uint64_t pause = 5000000;
  const uint64_t now = nanosecondsNow();
  if (!segment->isShared() || now - lookedAt_.load() < pause) return -1;
  lookedAt_ = now;
  for (int other = 0; other < ranks; ++other) {
    const auto isAttached = [&] {
      const auto state = static_cast<RankState>(segment->slot(other).state.load());
      return state == RankState::attached || state == RankState::revoked;
    };
    if (other != rank && isAttached() && !segment->isRankLocked(other) && isAttached()) return other;
  }
  return -1;
}

ncclResult_t Endpoint::fail(ncclResult_t result, const std::string& text) {
  Control& control = segment->control();
  uint32_t none = 0;
  if (control.isFailing.compare_exchange_strong(none, 1)) {
    strncpy(control.failureText, text.c_str(), sizeof control.failureText - 1);
    control.failure = static_cast<uint32_t>(result);
  }
  // Another rank is writing the failure. If it died before it finished, write the failure here.
  for (int attempt = 0; control.failure.load() == ncclSuccess; ++attempt) {
    if (attempt == 100000) control.failure = static_cast<uint32_t>(result);
    sched_yield();
  }
  wakeAll();
  return failure();
}

void Endpoint::abort() {
  isAborted_ = true;
  wakeAll();
}

void Endpoint::wakeAll() {
  Control& control = segment->control();
  futexWakeAll(control.generation);
  futexWakeAll(control.attached);
  futexWakeAll(control.spoken);
  for (int other = 0; other < ranks; ++other) futexWakeAll(segment->slot(other).doorbell);
}

bool Endpoint::enterWork() {
  segment->control().working.fetch_add(1);
  if (failure() == ncclSuccess && !isStopped()) return true;
  leaveWork();
  return false;
}

void Endpoint::leaveWork() { segment->control().working.fetch_sub(1); }

void Endpoint::waitForWorkers() {
  while (segment->control().working.load() != 0) sched_yield();
}

}  // namespace shoal::nccl
