#ifndef SHOAL_CUDA_PROFILER_API_H
#define SHOAL_CUDA_PROFILER_API_H

#include <driver_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** \defgroup CUDART_PROFILER @{ */
extern __host__ cudaError_t CUDARTAPI cudaProfilerStart(void);
extern __host__ cudaError_t CUDARTAPI cudaProfilerStop(void);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
