// Multicast: what can be asked without making an object. None is ever made here: on some machines that can put the
// links between GPUs out of service for everybody.
#include "mapped.h"

namespace ask {

void multicastQueries() {
  cuInit(0);
  CUmulticastObjectProp properties = {2, 64 * kPiece, 0, 0};
  size_t granularity = 0;
  int isSupported = -1;
  say("attribute", cuDeviceGetAttribute(&isSupported, 132, 0));
  fprintf(stderr, "multicast supported: %d\n", isSupported);
  for (const int option : {0, 1, 2}) {
    granularity = 0;
    const std::string name = "granularity " + std::to_string(option);
    const int status =
        cuMulticastGetGranularity(&granularity, &properties, static_cast<CUmulticastGranularity_flags>(option));
    say(name, status);
    fprintf(stderr, "multicast granularity %d: %zu\n", option, granularity);
    if (status == 0 && option == 0) say(name + " value", static_cast<long long>(granularity));
  }
  say("granularity NULL", cuMulticastGetGranularity(nullptr, &properties, CU_MULTICAST_GRANULARITY_MINIMUM));
  say("granularity NULL properties",
      cuMulticastGetGranularity(&granularity, nullptr, CU_MULTICAST_GRANULARITY_MINIMUM));
  properties.numDevices = 0;
  say("granularity 0 devices", cuMulticastGetGranularity(&granularity, &properties, CU_MULTICAST_GRANULARITY_MINIMUM));
  properties.numDevices = 1000;
  say("granularity 1000 devices",
      cuMulticastGetGranularity(&granularity, &properties, CU_MULTICAST_GRANULARITY_MINIMUM));
  properties = {2, 0, 0, 0};
  say("granularity size 0", cuMulticastGetGranularity(&granularity, &properties, CU_MULTICAST_GRANULARITY_MINIMUM));
  properties = {2, kPiece, 1, 0};
  say("granularity with descriptor",
      cuMulticastGetGranularity(&granularity, &properties, CU_MULTICAST_GRANULARITY_MINIMUM));
  properties = {2, kPiece, 0, 1};
  say("granularity flags 1", cuMulticastGetGranularity(&granularity, &properties, CU_MULTICAST_GRANULARITY_MINIMUM));
}

}  // namespace ask
