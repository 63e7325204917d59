// The part of the CUDA runtime's C ABI that the software device speaks: see cuda.h. What has the layout and the values
// of the driver's is the driver's here.
#pragma once

#include "cuda.h"

#define SHOAL_CUDART_VERSION 13000

extern "C" {
#include "shoal/cudart.gen.h"
}
