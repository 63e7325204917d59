// Asks a CUDA driver how it answers in the corners of its API, and prints one `group.name = code` a line. Linked to a
// real libcuda it tells what hardware does; linked to the software device it must print the same
// (hardwareAnswers.test.ts). Each group runs in a process of its own, so that what crashes or poisons a driver ends
// with its group.
#pragma once

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "../groups.h"
#include "shoal/cuda.h"

namespace ask {

using record::say;

// The primary context of a device, made current.
CUcontext primary(int device = 0);

template <class Handle>
Handle wild(uint64_t value) {
  return reinterpret_cast<Handle>(value);
}

// A call that may bring the process down: it gets one of its own.
struct Call {
  const char* name;
  CUresult (*call)();
};

// The groups, by subject.
void beforeInit();
void withoutContext();
void devices();
void contexts();
void threads();
void peers();
void memory();
void pointers();
void eventsAndStreams();
void procAddress();
void modules();
void poisoned();
void addresses();
void physicalMemory();
void mappings();
void rights();
void shareableHandles();
void pools();
void poolOrder();
void poolThreshold();
void poolRights();
void poolKinds();
void peerMemory();
void poolPlaces();
void legacyIpc();
void multicastQueries();

const std::vector<Call>& staleCalls();
const std::vector<Call>& mappedCalls();

// Objects of a context that is gone, and what is asked about them.
struct Destroyed {
  CUcontext context;
  CUstream stream;
  CUevent event;
  CUdeviceptr memory;
  void* host;
};
Destroyed makeDestroyed(bool isPrimary, bool anotherCurrent);
struct DestroyedCall {
  const char* name;
  CUresult (*call)(Destroyed&);
};
const std::vector<DestroyedCall>& destroyedCalls();

}  // namespace ask
