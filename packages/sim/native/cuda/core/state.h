// The state that the process shares. Never destroyed, because streams may still run while the process exits.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "allocation.h"
#include "forengine.h"
#include "handles.h"
#include "shoal/cuda.h"

namespace shoal {

class Context;
class Device;
class Event;
class Pool;
class Stream;

struct State {
  std::atomic<bool> initialised{false};
  double timeoutSeconds = 60;    // how long a call waits for other processes; 0 waits for ever
  unsigned multiprocessors = 4;  // per device
  bool hasFabric = false;        // supports handles that are plain bytes; hardware requires an IMEX channel
  std::vector<std::unique_ptr<Device>> devices;
  HandleTable<Context> contexts{1};
  HandleTable<Stream> streams{2, "streams"};
  HandleTable<Event> events{3, "events"};
  HandleTable<Pool> pools{5};
  AllocationTable allocations;
  LeavingAllocations leaving;
  AddressTable addresses;
};

SHOAL_FOR_ENGINE State& state();
// Lists objects that the program did not free, one line per kind, like a leak checker for GPUs.
std::string describeLeft();
CUresult initialise();
CUresult findDevice(CUdevice ordinal, Device*& device);

}  // namespace shoal
