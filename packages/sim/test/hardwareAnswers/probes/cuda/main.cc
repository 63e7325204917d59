// Runs the groups, each in a process of its own, made before anything was initialised.
#include "ask.h"

namespace ask {

CUcontext primary(int device) {
  CUcontext context = nullptr;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxSetCurrent(context);
  return context;
}

}  // namespace ask

int main(int count, char** arguments) {
  using namespace ask;
  using record::runGroup;
  const std::string only = count > 1 ? arguments[1] : "";
  const struct {
    const char* name;
    void (*body)();
  } groups[] = {
      {"before init", beforeInit},
      {"without context", withoutContext},
      {"devices", devices},
      {"contexts", contexts},
      {"memory", memory},
      {"pointers", pointers},
      {"events and streams", eventsAndStreams},
      {"proc address", procAddress},
      {"modules", modules},
      {"poisoned", poisoned},
      {"peers", peers},
      {"peer memory", peerMemory},
      {"threads", threads},
      {"addresses", addresses},
      {"physical memory", physicalMemory},
      {"mappings", mappings},
      {"rights", rights},
      {"shareable handles", shareableHandles},
      {"pools", pools},
      {"pool order", poolOrder},
      {"pool threshold", poolThreshold},
      {"pool rights", poolRights},
      {"pool kinds", poolKinds},
      {"pool places", poolPlaces},
      {"legacy ipc", legacyIpc},
      {"multicast", multicastQueries},
  };
  for (auto& each : groups) {
    if (only.empty() || only == each.name) runGroup(each.name, each.body);
  }
  if (!only.empty() && only != "one call") return 0;
  for (auto& each : destroyedCalls()) {
    for (const bool isPrimary : {true, false}) {
      for (const bool anotherCurrent : {false, true}) {
        const std::string name =
            std::string(isPrimary ? "dead primary" : "dead created") + (anotherCurrent ? " with another" : "");
        runGroup(name + "." + each.name, [&] {
          Destroyed dead = makeDestroyed(isPrimary, anotherCurrent);
          say("result", each.call(dead));
        });
      }
    }
  }
  for (auto& each : staleCalls()) {
    runGroup(std::string("stale.") + each.name, [&] {
      primary();
      say("result", each.call());
    });
  }
  for (auto& each : mappedCalls()) {
    runGroup(std::string("mapped.") + each.name, [&] {
      primary();
      say("result", each.call());
    });
  }
  return 0;
}
