// What becomes of the texels around a place, to the last bits as an H200 has them. No document says so much: it was
// told from some 30,000 of its samples.
#pragma once

#include "array/array.h"

namespace shoal::ptx {

constexpr int kWhole = 256;            // of a texel, and of all weights together
constexpr unsigned kMostCorners = 16;  // of a cube, on two levels

// The weights of the corners of a line, a square or a cube, which together are `whole`, from how far the place is from
// the first of them, in parts of 256.
void findWeights(int whole, unsigned axes, const int* fractions, int* weights);

// One part of all corners: floats as their bits, anything else as the integers that are in memory. `isReal`: read as
// floats.
uint32_t mix(const TexelFormat& format, bool isReal, const uint32_t* parts, const int* weights, unsigned corners);

// The same of floats of 16 bits.
uint32_t mixHalf(const uint32_t* parts, const int* weights, unsigned corners);

// A border's part as the format holds it.
uint32_t asTexel(const TexelFormat& format, float part);
// What is read of an integer that stands for a float.
float normalized(const TexelFormat& format, uint32_t part);

}  // namespace shoal::ptx
