#include "endpoint.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

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
  static const uint64_t value = [] {
    const char* text = getenv("SHOAL_SIM_TIMEOUT_SECONDS");
    char* end = nullptr;
    const double seconds = text == nullptr || *text == '\0' ? 60 : strtod(text, &end);
    if (text != nullptr && *text != '\0' && (*end != '\0' || !(seconds >= 0) || seconds > 1e9)) {
      fprintf(stderr, "shoal: SHOAL_SIM_TIMEOUT_SECONDS=%s is not a number of seconds; 60 is used\n", text);
      return uint64_t{60000000000u};
    }
    return static_cast<uint64_t>(seconds * 1e9);
  }();
  return value;
}

ncclResult_t Endpoint::attach(int device) {
  Control& control = segment->control();
  uint32_t known = 0;
  if (!control.ranks.compare_exchange_strong(known, static_cast<uint32_t>(ranks)) && known != static_cast<uint32_t>(ranks)) {
    return problem(ncclInvalidArgument, "rank %d asks for %d ranks, another rank of this unique id asked for %u", rank, ranks, known);
  }
  RankSlot& slot = segment->slot(rank);
  if (segment->isNamed() && !segment->lockRank(rank)) {
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
  if (control.attached.fetch_add(1) + 1 == static_cast<uint32_t>(ranks)) segment->unlink();
  futexWakeAll(control.attached);
  return ncclSuccess;
}

ncclResult_t Endpoint::waitForAll() {
  Control& control = segment->control();
  const ncclResult_t met = waitUntil(control.attached, everybody(), "initialization",
                                     [&] { return control.attached.load() == static_cast<uint32_t>(ranks); });
  if (met != ncclSuccess) {
    segment->unlink();
    return met == failure() ? problem(met, "%s", control.failureText) : met;
  }
  segment->unlink();  // whoever came last did it; this process need not remember the name
  for (int other = 0; other < ranks; ++other) {
    isDirect = isDirect && segment->slot(other).processToken == ownToken();
    for (int before = 0; before < other; ++before) {
      if (segment->slot(before).device == segment->slot(other).device) {
        return problem(ncclInvalidUsage, "rank %d and rank %d are both on CUDA device %d", before, other, segment->slot(other).device.load());
      }
    }
  }
  std::string reason;
  if (!isDirect && !segment->reserveStaging(reason)) return fail(ncclSystemError, reason);
  return ncclSuccess;
}

void Endpoint::leave(RankState state) {
  if (!isAttached_) return;
  isAttached_ = false;
  segment->slot(rank).state = static_cast<uint32_t>(state);
  Control& control = segment->control();
  futexWakeAll(control.generation);
  futexWakeAll(control.attached);
  for (int other = 0; other < ranks; ++other) futexWakeAll(segment->slot(other).doorbell);
  if (control.attached.load() < static_cast<uint32_t>(ranks)) segment->unlink();
}

ncclResult_t Endpoint::barrier() {
  Control& control = segment->control();
  if (isAborted()) return ncclInternalError;
  if (const ncclResult_t failed = failure()) return failed;
  const uint32_t generation = control.generation.load();
  if (control.arrived.fetch_add(1) + 1 == static_cast<uint32_t>(ranks)) {
    control.arrived = 0;
    control.generation.fetch_add(1);
    futexWakeAll(control.generation);
    return ncclSuccess;
  }
  return waitUntil(control.generation, everybody(), "a collective", [&] { return control.generation.load() != generation; });
}

// A rank that has not come yet is not missing.
int Endpoint::findMissing(uint64_t concerns, const char*& how) const {
  for (int other = 0; other < ranks; ++other) {
    if ((concerns >> other & 1) == 0) continue;
    switch (static_cast<RankState>(segment->slot(other).state.load())) {
      case RankState::absent: continue;
      case RankState::left: how = "left the communicator"; return other;
      case RankState::aborted: how = "aborted the communicator"; return other;
      case RankState::attached: break;
    }
    if (segment->isNamed() && !segment->isRankLocked(other)) {
      // It may have left properly between the two looks.
      const bool hasLeft = segment->slot(other).state.load() != static_cast<uint32_t>(RankState::attached);
      how = hasLeft ? "left the communicator" : "ended without leaving the communicator";
      return other;
    }
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
  // Somebody else is about to tell; should it have died just there, tell it ourselves.
  for (int patience = 0; control.failure.load() == ncclSuccess; ++patience) {
    if (patience == 100000) control.failure = static_cast<uint32_t>(result);
    sched_yield();
  }
  futexWakeAll(control.generation);
  futexWakeAll(control.attached);
  for (int other = 0; other < ranks; ++other) futexWakeAll(segment->slot(other).doorbell);
  return failure();
}

void Endpoint::abort() {
  isAborted_ = true;
  Control& control = segment->control();
  futexWakeAll(control.generation);
  futexWakeAll(control.attached);
  futexWakeAll(segment->slot(rank).doorbell);
}

bool Endpoint::enterWork() {
  segment->control().working.fetch_add(1);
  if (failure() == ncclSuccess && !isAborted()) return true;
  leaveWork();
  return false;
}

void Endpoint::leaveWork() { segment->control().working.fetch_sub(1); }

void Endpoint::waitForWorkers() {
  while (segment->control().working.load() != 0) sched_yield();
}

}  // namespace shoal::nccl
