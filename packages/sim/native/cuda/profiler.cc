// Profiler ranges. The software device has no profiler, so the calls do nothing, as on hardware without one.
#include "core/entry.h"

using namespace shoal;

CUresult cuProfilerStart(void) {
  return inContext([](auto&) { return CUDA_SUCCESS; });
}
CUresult cuProfilerStop(void) {
  return inContext([](auto&) { return CUDA_SUCCESS; });
}
