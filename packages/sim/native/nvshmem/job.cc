#include "job.h"

#include <unistd.h>

#include <cstring>

#include "../shared/localSocket.h"
#include "fault.h"
#include "report.h"
#include "shoal/cuda.h"

namespace shoal::nvshmem {

namespace {

uint64_t bitsOf(const std::vector<int>& members) {
  uint64_t bits = 0;
  for (const int member : members) bits |= uint64_t{1} << member;
  return bits;
}

}  // namespace

std::shared_ptr<Job> Job::join(const std::shared_ptr<Control>& control, int pe, int size, std::string& problem) {
  Shared& shared = control->shared();
  uint32_t known = 0;
  if (!shared.size.compare_exchange_strong(known, static_cast<uint32_t>(size)) &&
      known != static_cast<uint32_t>(size)) {
    problem = "PE " + std::to_string(pe) + " asks for " + std::to_string(size) + " PEs, another asked for " +
              std::to_string(known);
    return nullptr;
  }
  PeSlot& slot = control->pe(pe);
  if (!control->lockPe(pe) || slot.state.load() != static_cast<uint32_t>(PeState::absent)) {
    problem = "PE " + std::to_string(pe) + " is taken already";
    return nullptr;
  }
  std::shared_ptr<Job> job(new Job(control, pe, size));
  if (!job->exchange.listen(nameOf("shoal-nvshmem-", randomBytes()), problem)) return nullptr;
  snprintf(slot.exchange, sizeof slot.exchange, "%s", job->exchange.name().c_str());
  slot.process = static_cast<int32_t>(getpid());
  slot.state = static_cast<uint32_t>(PeState::attached);
  shared.attached.fetch_add(1);
  futexWakeAll(shared.attached);
  // Inject the fault after the other PEs have seen this PE.
  CUdevice device = 0;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS) device = 0;
  injectFault("nvshmemx_hostlib_init_attr", pe, device);
  const Group all = job->everybody(kStartSlot);
  if (!job->waitFor(shared.attached, bitsOf(all.members), true, "the start",
                    [&] { return shared.attached.load() == static_cast<uint32_t>(size); })) {
    const char* failure = control->failure();
    problem = failure != nullptr ? failure : "the start has failed";
    keep(std::move(job));
    return nullptr;
  }
  return job;
}

void Job::keep(std::shared_ptr<Job> job) {
  static auto* kept = new std::vector<std::shared_ptr<Job>>;
  static auto* mutex = new std::mutex;
  std::lock_guard lock(*mutex);
  kept->push_back(std::move(job));
}

Group Job::everybody(int slot) const {
  Group group;
  group.slot = slot;
  group.own = pe;
  for (int each = 0; each < size; ++each) group.members.push_back(each);
  group.mayHaveEnded = slot == kStartSlot;
  return group;
}

bool Job::sync(const Group& group, const char* what) {
  if (control->failure() != nullptr) {
    tellFailure();
    return false;
  }
  TeamSlot& slot = control->team(group.slot);
  const uint64_t ticket = slot.arrivals[group.own].fetch_add(1) + 1;
  slot.doorbell.fetch_add(1);
  futexWakeAll(slot.doorbell);
  return waitFor(slot.doorbell, bitsOf(group.members), group.mayHaveEnded, what, [&] {
    for (size_t member = 0; member < group.members.size(); ++member) {
      if (slot.arrivals[member].load() < ticket) return false;
    }
    return true;
  });
}

bool Job::tell(const Group& group, const char* what, const Description& own, std::vector<Description>& all) {
  TeamSlot& slot = control->team(group.slot);
  slot.descriptions[group.own] = own;
  if (!sync(group, what)) return false;
  all.assign(slot.descriptions, slot.descriptions + group.members.size());
  return sync(group, what);
}

void Job::ring(int other) {
  PeSlot& slot = control->pe(other);
  slot.doorbell.fetch_add(1);
  futexWakeAll(slot.doorbell);
}

int Job::findMissing(uint64_t concerns, bool mayHaveEnded, const char*& how) const {
  for (int other = 0; other < size; ++other) {
    if ((concerns >> other & 1) == 0) continue;
    const auto state = static_cast<PeState>(control->pe(other).state.load());
    if (state == PeState::absent) continue;
    if (!control->isPeAlive(other)) {
      how = "ended";
      return other;
    }
    if (state == PeState::left && !mayHaveEnded) {
      how = "finalized";
      return other;
    }
  }
  return -1;
}

void Job::fail(const std::string& text) {
  control->fail(text);
  tellFailure();
}

void Job::tellFailure() {
  if (hasTold_.exchange(true)) return;
  const char* failure = control->failure();
  report("%s", failure != nullptr ? failure : "the job has failed");
}

}  // namespace shoal::nvshmem
