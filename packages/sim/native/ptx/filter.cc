#include "filter.h"

#include <algorithm>
#include <cmath>

#define SHOAL_LANES plain
#include "lanes/real.h"

namespace shoal::ptx {

namespace {

int part(int whole, int fraction) { return (whole * fraction + kWhole / 2) / kWhole; }

// The weights of a square that together are `whole`. At the middle, rounding favours corners with equal coordinates, as
// on hardware.
void shareSquare(int whole, int x, int y, int* weights) {
  const int right = part(whole, x), left = whole - right;
  weights[0] = part(left, kWhole - y);
  weights[1] = right - part(right, y);
  weights[2] = left - weights[0];
  weights[3] = right - weights[1];
}

bool isSigned(const TexelFormat& format) {
  return format.channel == Channel::signedInteger || format.channel == Channel::signedNorm;
}
// The integer that represents 1.0.
int64_t largest(const TexelFormat& format) {
  return (int64_t{1} << (8 * format.channelBytes - (isSigned(format) ? 1 : 0))) - 1;
}

int64_t wholePart(int64_t numerator, int64_t denominator) {
  return numerator / denominator - (numerator % denominator < 0 ? 1 : 0);
}

// Rounds the sum to `bits` bits, ties away from zero.
float rounded(double sum, int bits, int least) {
  int exponent = 0;
  std::frexp(sum, &exponent);
  const int unit = std::max(exponent - bits, least);
  return static_cast<float>(std::ldexp(std::round(std::ldexp(sum, -unit)), unit));
}

// Aligns the floats to the largest exponent, with four extra bits of precision. Lower bits are cut off.
uint32_t mixReal(bool isHalf, const uint32_t* parts, const int* weights, unsigned corners) {
  const int bits = isHalf ? 11 : 24, least = isHalf ? -24 : -149;
  int exponent = least + bits;
  bool isFinite = true;
  for (unsigned at = 0; at < corners; ++at) {
    const float value = plain::asFloat(parts[at]);
    if (weights[at] == 0 || value == 0) continue;
    isFinite = isFinite && std::isfinite(value);
    int own = 0;
    std::frexp(value, &own);
    exponent = std::max(exponent, own);
  }
  const int unit = exponent - bits - 4;
  double sum = 0;
  for (unsigned at = 0; at < corners; ++at) {
    if (weights[at] == 0) continue;
    const double value = plain::asFloat(parts[at]);
    sum += weights[at] * (isFinite ? std::trunc(std::ldexp(value, -unit)) : value);
  }
  if (!isFinite) return plain::bitsOf(static_cast<float>(sum));
  return plain::bitsOf(rounded(std::ldexp(sum, unit - 8), bits, least));
}

}  // namespace

void findWeights(int whole, unsigned axes, const int* fractions, int* weights) {
  if (axes == 1) {
    weights[1] = part(whole, fractions[0]);
    weights[0] = whole - weights[1];
    return;
  }
  const int front = axes == 3 ? part(whole, kWhole - fractions[2]) : whole, back = whole - front;
  shareSquare(front, fractions[0], fractions[1], weights);
  if (axes == 3) shareSquare(back, fractions[0], fractions[1], weights + 4);
}

uint32_t mix(const TexelFormat& format, bool isReal, const uint32_t* parts, const int* weights, unsigned corners) {
  if (format.channel == Channel::real) return mixReal(format.channelBytes == 2, parts, weights, corners);
  int64_t sum = 0;
  for (unsigned at = 0; at < corners; ++at)
    sum += weights[at] * (isSigned(format) ? int64_t{static_cast<int32_t>(parts[at])} : int64_t{parts[at]});
  if (!isReal) return static_cast<uint32_t>(wholePart(sum + (format.channelBytes < 4 ? kWhole / 2 : 0), kWhole));
  // Computed in 16 bits, even for texels with fewer.
  const int64_t one = isSigned(format) ? 32767 : 65535, divisor = kWhole * largest(format);
  const auto value = static_cast<float>(wholePart(2 * sum * one + divisor, 2 * divisor)) / static_cast<float>(one);
  return plain::bitsOf(std::max(value, -1.0f));
}

uint32_t mixHalf(const uint32_t* parts, const int* weights, unsigned corners) {
  return mixReal(true, parts, weights, corners);
}

uint32_t asTexel(const TexelFormat& format, float part) {
  if (format.channel == Channel::real)
    return plain::bitsOf(format.channelBytes == 2 ? plain::fromHalf(plain::toHalf(part)) : part);
  const double least = isSigned(format) ? -1 : 0, within = part > least ? std::min(part, 1.0f) : least;
  // Ties round down.
  return static_cast<uint32_t>(static_cast<int64_t>(std::ceil(within * static_cast<double>(largest(format)) - 0.5)));
}

float normalized(const TexelFormat& format, uint32_t part) {
  const auto one = static_cast<float>(largest(format));
  return isSigned(format) ? std::max(static_cast<float>(static_cast<int32_t>(part)) / one, -1.0f)
                          : static_cast<float>(part) / one;
}

}  // namespace shoal::ptx
