#ifndef SHOAL_CUDA_PROFILER_H
#define SHOAL_CUDA_PROFILER_H

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/** \defgroup CUDA_PROFILER_DEPRECATED @{ */
typedef enum CUoutput_mode_enum { CU_OUT_KEY_VALUE_PAIR = 0x00, CU_OUT_CSV = 0x01 } CUoutput_mode;
__attribute__((deprecated)) CUresult CUDAAPI cuProfilerInitialize(const char *configFile, const char *outputFile, CUoutput_mode outputMode);
/** @} */

/** \defgroup CUDA_PROFILER @{ */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
