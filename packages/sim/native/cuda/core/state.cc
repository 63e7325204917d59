#include "state.h"

#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <sstream>

#include "context.h"
#include "device.h"
#include "event.h"
#include "multiprocessors.h"
#include "pool/pool.h"
#include "stream.h"

namespace shoal {

namespace {

constexpr unsigned long long kDefaultDevices = 2;
constexpr unsigned long long kMaxDevices = 64;
constexpr unsigned long long kDefaultMemory = 1ull << 30;

// A fork child does not inherit the stream threads, so CUDA is unusable there, as on hardware.
std::atomic<bool> forked{false};

unsigned long long setting(const char* name, unsigned long long fallback, unsigned long long least,
                           unsigned long long most) {
  const char* text = getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || *end != '\0' || *text == '-' || value < least || value > most) {
    fprintf(stderr, "shoal: %s=%s is not a whole number from %llu to %llu; %llu is used\n", name, text, least, most,
            fallback);
    return fallback;
  }
  return value;
}

// The NCCL library also reads this variable and reports a wrong value.
double timeout() {
  constexpr double fallback = 60;
  const char* text = getenv("SHOAL_SIM_TIMEOUT_SECONDS");
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  const double seconds = strtod(text, &end);
  return *end == '\0' && seconds >= 0 ? seconds : fallback;
}

// Runs at exit if SHOAL_SIM_LEAKS=1.
void reportLeaks() {
  if (forked) return;
  std::istringstream lines(describeLeft());
  for (std::string line; std::getline(lines, line);) fprintf(stderr, "shoal: left at exit: %s\n", line.c_str());
}

struct Tables {
  std::mutex mutex;
  std::vector<const CountedTable*> all;
};

Tables& tables() {
  static auto* shared = new Tables;
  return *shared;
}

}  // namespace

State& state() {
  static State* shared = new State;
  return *shared;
}

unsigned multiprocessorCount() { return state().multiprocessors; }

CountedTable::CountedTable(const char* given) : name(given) {
  std::lock_guard lock(tables().mutex);
  tables().all.push_back(this);
}

std::string describeLeft() {
  constexpr const char* names[] = {"device", "managed", "page-locked", "registered", "pooled", "mapped", "imported"};
  size_t counts[std::size(names)] = {}, bytes[std::size(names)] = {};
  for (const auto& allocation : state().allocations.all()) {
    counts[static_cast<size_t>(allocation->kind)] += 1;
    bytes[static_cast<size_t>(allocation->kind)] += allocation->size;
  }
  std::ostringstream text;
  for (size_t kind = 0; kind < std::size(names); ++kind) {
    if (counts[kind] > 0) text << counts[kind] << ' ' << names[kind] << " allocations, " << bytes[kind] << " bytes\n";
  }
  size_t contexts = 0, pools = 0;
  for (const auto& context : state().contexts.all()) contexts += context->isPrimary || !context->alive ? 0 : 1;
  if (contexts > 0) text << contexts << " contexts\n";
  for (const auto& pool : state().pools.all()) pools += pool->isDefault ? 0 : 1;
  if (pools > 0) text << pools << " pools\n";
  std::lock_guard lock(tables().mutex);
  for (const CountedTable* table : tables().all) {
    const size_t count = table->name == nullptr ? 0 : table->count();
    if (count > 0) text << count << ' ' << table->name << '\n';
  }
  return text.str();
}

CUresult initialise() {
  static std::mutex* mutex = new std::mutex;
  std::lock_guard lock(*mutex);
  if (forked) return CUDA_ERROR_NOT_INITIALIZED;
  State& shared = state();
  if (shared.initialised) return CUDA_SUCCESS;
  const auto count = setting("SHOAL_SIM_DEVICES", kDefaultDevices, 0, kMaxDevices);
  const auto memory = setting("SHOAL_SIM_MEMORY_BYTES", kDefaultMemory, 1 << 20, 1ull << 40);
  shared.multiprocessors =
      static_cast<unsigned>(setting("SHOAL_SIM_MULTIPROCESSORS", shared.multiprocessors, 1, kMostMultiprocessors));
  if (count == 0) return CUDA_ERROR_NO_DEVICE;
  shared.timeoutSeconds = timeout();
  shared.hasFabric = setting("SHOAL_SIM_FABRIC", 0, 0, 1) == 1;
  for (unsigned long long ordinal = 0; ordinal < count; ++ordinal) {
    shared.devices.push_back(std::make_unique<Device>(static_cast<int>(ordinal), memory));
  }
  for (auto& device : shared.devices) {
    device->primary = Context::create(*device, true, 0);
    device->primary->alive = false;
  }
  pthread_atfork(nullptr, nullptr, [] {
    forked = true;
    state().initialised = false;
  });
  if (setting("SHOAL_SIM_LEAKS", 0, 0, 1) == 1) atexit(reportLeaks);
  shared.initialised = true;
  return CUDA_SUCCESS;
}

CUresult findDevice(CUdevice ordinal, Device*& device) {
  auto& devices = state().devices;
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) return CUDA_ERROR_INVALID_DEVICE;
  device = devices[static_cast<size_t>(ordinal)].get();
  return CUDA_SUCCESS;
}

}  // namespace shoal
