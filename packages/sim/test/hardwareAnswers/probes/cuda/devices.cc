// Devices and their attributes.
#include "ask.h"

namespace ask {

void devices() {
  cuInit(0);
  int number = -7, count = 0;
  char text[64] = "unchanged";
  CUuuid uuid;
  unsigned mask = 0;
  size_t size = 0;
  cuDeviceGetCount(&count);
  say("cuDeviceGet(-1)", cuDeviceGet(&number, -1));
  say("cuDeviceGet(count)", cuDeviceGet(&number, count));
  say("cuDeviceGetName(4)", cuDeviceGetName(text, 4, 0));
  say("cuDeviceGetName(4) length", static_cast<long long>(strnlen(text, 64)));
  say("cuDeviceGetName(bad device)", cuDeviceGetName(text, 10, 99));
  say("cuDeviceGetUuid(bad device)", cuDeviceGetUuid_v2(&uuid, 99));
  say("cuDeviceGetLuid", cuDeviceGetLuid(text, &mask, 0));
  say("cuDeviceTotalMem(bad device)", cuDeviceTotalMem_v2(&size, 99));
  say("cuDeviceGetAttribute(0)", cuDeviceGetAttribute(&number, 0, 0));
  say("cuDeviceGetAttribute(148)", cuDeviceGetAttribute(&number, 148, 0));
  say("cuDeviceGetAttribute(100000)", cuDeviceGetAttribute(&number, 100000, 0));
  say("cuDeviceGetAttribute(bad device)", cuDeviceGetAttribute(&number, 1, 99));
  for (int attribute = 1; attribute <= 147; ++attribute) {
    number = -12345;
    const int status = cuDeviceGetAttribute(&number, attribute, 0);
    char name[32];
    snprintf(name, sizeof name, "attribute %d", attribute);
    say(name, status);
    fprintf(stderr, "attribute %d = %d\n", attribute, number);
  }
  say("cuDeviceGetPCIBusId(0)", cuDeviceGetPCIBusId(text, 0, 0));
  say("cuDeviceGetPCIBusId(5)", cuDeviceGetPCIBusId(text, 5, 0));
  say("cuDeviceGetPCIBusId(12)", cuDeviceGetPCIBusId(text, 12, 0));
  say("cuDeviceGetPCIBusId(13)", cuDeviceGetPCIBusId(text, 13, 0));
  say("cuDeviceGetPCIBusId length", static_cast<long long>(strnlen(text, 64)));
  say("cuDeviceGetByPCIBusId(own)", cuDeviceGetByPCIBusId(&number, text));
  say("cuDeviceGetByPCIBusId(garbage)", cuDeviceGetByPCIBusId(&number, "garbage"));
  say("cuDeviceGetByPCIBusId(absent)", cuDeviceGetByPCIBusId(&number, "0000:fe:1f.0"));
  say("cuDeviceGetExecAffinitySupport", cuDeviceGetExecAffinitySupport(&number, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
  say("cuDeviceGetExecAffinitySupport(7)",
      cuDeviceGetExecAffinitySupport(&number, static_cast<CUexecAffinityType>(7), 0));
  say("cuDeviceCanAccessPeer(self)", cuDeviceCanAccessPeer(&number, 0, 0));
  say("cuDeviceCanAccessPeer(self) value", number);
  say("cuDeviceCanAccessPeer(bad)", cuDeviceCanAccessPeer(&number, 0, 99));
  say("cuDeviceGetP2PAttribute(self)",
      cuDeviceGetP2PAttribute(&number, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
  say("cuDeviceGetP2PAttribute(bad device)",
      cuDeviceGetP2PAttribute(&number, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 99));
  if (count > 1) {
    say("cuDeviceCanAccessPeer", cuDeviceCanAccessPeer(&number, 0, 1));
    say("cuDeviceCanAccessPeer value", number);
    for (int attribute = 0; attribute <= 6; ++attribute) {
      number = -7;
      const int status = cuDeviceGetP2PAttribute(&number, static_cast<CUdevice_P2PAttribute>(attribute), 0, 1);
      char name[48];
      snprintf(name, sizeof name, "cuDeviceGetP2PAttribute(%d)", attribute);
      say(name, status);
      fprintf(stderr, "p2p %d = %d\n", attribute, number);
    }
  }
}

}  // namespace ask
