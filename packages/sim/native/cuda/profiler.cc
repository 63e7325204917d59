// Ranges for a profiler, of which there is none here: as on hardware without one, nothing happens.
#include "core/entry.h"

using namespace shoal;

CUresult cuProfilerStart(void) {
  return inContext([](auto&) { return CUDA_SUCCESS; });
}
CUresult cuProfilerStop(void) {
  return inContext([](auto&) { return CUDA_SUCCESS; });
}
