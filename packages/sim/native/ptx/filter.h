// Texture filtering, bit-exact with an H200. NVIDIA does not document it to this precision; the rules were derived from
// some 30,000 samples of an H200.
#pragma once

#include "array/array.h"

namespace shoal::ptx {

constexpr int kWhole = 256;            // fractions of a texel; also the sum of all weights
constexpr unsigned kMostCorners = 16;  // a cube on two levels

// The weights of the corners of a line, a square or a cube; their sum is `whole`. `fractions` are the distances from
// the first corner, in 1/256.
void findWeights(int whole, unsigned axes, const int* fractions, int* weights);

// Mixes one component of all corners. Floats are passed as bits, other values as the integers in memory. `isReal`: the
// result is a float.
uint32_t mix(const TexelFormat& format, bool isReal, const uint32_t* parts, const int* weights, unsigned corners);

// The same for 16-bit floats.
uint32_t mixHalf(const uint32_t* parts, const int* weights, unsigned corners);

// Converts a border component to the format.
uint32_t asTexel(const TexelFormat& format, float part);
// Converts an integer that represents a float.
float normalized(const TexelFormat& format, uint32_t part);

}  // namespace shoal::ptx
