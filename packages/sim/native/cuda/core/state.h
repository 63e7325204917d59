// Everything the process shares. Never destroyed: streams may still run while the process exits.
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
  double timeoutSeconds = 60;    // how long a call waits for other processes; 0: for ever
  unsigned multiprocessors = 4;  // of each device
  bool hasFabric = false;        // handles that are plain bytes; hardware has them with an IMEX channel only
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
// What nobody has given back, as a leak check of a GPU tells it: one line a kind.
std::string describeLeft();
CUresult initialise();
CUresult findDevice(CUdevice ordinal, Device*& device);

}  // namespace shoal
