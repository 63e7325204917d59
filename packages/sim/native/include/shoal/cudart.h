// The part of the CUDA runtime's C ABI that the software device implements; see cuda.h. Types with the same layout and
// values as the driver's are aliases of the driver's types.
#pragma once

#include "cuda.h"

#define SHOAL_CUDART_VERSION 13000

extern "C" {
#include "shoal/cudart.gen.h"
}
