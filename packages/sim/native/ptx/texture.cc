// Texture sampling as in the CUDA programming guide: texel coordinates with 8 fractional bits, the weights from these
// bits, and one address mode per dimension.
#include "texture.h"

#include <cmath>
#include <cstring>

#include "filter.h"
#include "launch.h"

#define SHOAL_LANES plain
#include "lanes/real.h"

namespace shoal::ptx {

namespace {

constexpr uint32_t kNone = ~0u;
constexpr double kFractions = kWhole;  // fractions of a texel, and of a level
constexpr double kPlaces = 1 << 21;    // steps of a normalized coordinate

uint32_t wordOf(const Warp& warp, uint32_t operand, int lane) {
  const uint8_t* base = (operand & kConstant) != 0 ? warp.constants : warp.registers;
  uint32_t value;
  memcpy(&value, base + (operand & ~kConstant) + 4 * lane, 4);
  return value;
}
float realOf(const Warp& warp, uint32_t operand, int lane) { return plain::asFloat(wordOf(warp, operand, lane)); }
uint64_t bytesOf(const Warp& warp, uint32_t operand, int lane, unsigned bytes) {
  const unsigned laneBytes = bytes < 2 ? 2 : bytes;
  const uint8_t* base = (operand & kConstant) != 0 ? warp.constants : warp.registers;
  uint64_t value = 0;
  memcpy(&value, base + (operand & ~kConstant) + laneBytes * static_cast<unsigned>(lane), laneBytes);
  return value;
}
void putBytes(Warp& warp, uint32_t operand, int lane, uint64_t value, unsigned bytes) {
  const unsigned laneBytes = bytes < 2 ? 2 : bytes;
  if (operand != kNone) memcpy(warp.registers + operand + laneBytes * static_cast<unsigned>(lane), &value, laneBytes);
}

// The result has 8 bits of precision.
float fromSrgb(float value) {
  int exponent = 0;
  const float linear =
      std::frexp(value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f), &exponent);
  return std::ldexp(std::round(linear * 256), exponent - 8);
}

// One component of a texel: the bits of a float, or an integer.
uint32_t partAt(const BoundTexture& t, const char* at, unsigned part) {
  uint32_t bits = 0;
  memcpy(&bits, at + part * t.format.channelBytes, t.format.channelBytes);
  const unsigned unused = 32 - 8 * t.format.channelBytes;
  const int32_t extended = static_cast<int32_t>(bits << unused) >> unused;
  const bool isSigned = t.format.channel == Channel::signedInteger || t.format.channel == Channel::signedNorm;
  if (t.format.channel == Channel::real)
    return t.format.channelBytes == 2 ? plain::bitsOf(plain::fromHalf(static_cast<uint16_t>(bits))) : bits;
  return isSigned ? static_cast<uint32_t>(extended) : bits;
}

// Converts the component to the value that a register gets.
uint32_t readAs(const BoundTexture& t, uint32_t bits, unsigned part) {
  if (!t.isReal || t.format.channel == Channel::real) return bits;
  const float value = normalized(t.format, bits);
  return plain::bitsOf(t.isSrgb && part < 3 ? fromSrgb(value) : value);
}

struct Texel {
  uint32_t part[4];
};

// Applies the address mode to an index. A negative result means the border.
int64_t addressed(int64_t index, int64_t size, uint32_t mode) {
  if (index >= 0 && index < size) return index;
  switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP: return ((index % size) + size) % size;
    case CU_TR_ADDRESS_MODE_MIRROR: {
      const int64_t place = ((index % (2 * size)) + 2 * size) % (2 * size);
      return place < size ? place : 2 * size - 1 - place;
    }
    case CU_TR_ADDRESS_MODE_CLAMP: return index < 0 ? 0 : size - 1;
    default: return -1;
  }
}

// A sampling position in the texels of a level, in up to three dimensions, and a layer.
struct Spot {
  unsigned axes = 1;
  double at[3] = {};
  int64_t index[3] = {};
  int64_t offset[3] = {};
  bool isIndex = false;  // integer coordinates, which are not filtered
  bool isFace = false;   // on a cube face: coordinates from 0 to 1
  int64_t layer = 0;
};

Texel texelAt(const BoundTexture& t, const TextureLevel& level, const Spot& place, const int64_t* index) {
  const int64_t sizes[3] = {level.width, level.height, level.depth};
  int64_t found[3] = {};
  Texel out;
  memcpy(out.part, t.border, sizeof out.part);
  for (unsigned axis = 0; axis < place.axes; ++axis) {
    found[axis] = addressed(index[axis] + place.offset[axis], sizes[axis], t.modes[axis]);
    if (found[axis] < 0) return out;
  }
  const int64_t slice = place.axes == 3 ? found[2] : t.firstLayer + place.layer;
  static constexpr char nothing[16] = {};
  const char* at = level.at(static_cast<size_t>(found[0]) * t.format.bytes(), static_cast<size_t>(found[1]),
                            static_cast<size_t>(slice));
  if (at == nullptr) at = nothing;
  for (unsigned part = 0; part < 4; ++part) out.part[part] = part < t.format.channels ? partAt(t, at, part) : 0;
  return out;
}

// Converts a coordinate to texels. Repeating modes first reduce it. A normalized coordinate has 21 fractional bits.
double texelsOf(double at, int64_t size, bool isNormalized, uint32_t mode) {
  if (!(std::fabs(at) < 1e30)) at = at > 0 ? 1e30 : at < 0 ? -1e30 : 0;
  if (isNormalized) {
    if (mode == CU_TR_ADDRESS_MODE_WRAP) at -= std::floor(at);
    else if (mode == CU_TR_ADDRESS_MODE_MIRROR) at -= 2 * std::floor(at / 2);
    at = std::floor(at * kPlaces) / kPlaces * static_cast<double>(size);
  }
  constexpr double kFarAway = 1 << 24;
  return at < -kFarAway ? -kFarAway : at > kFarAway ? kFarAway : at;
}

// For each dimension, the first texel around the position, and the fraction of the way to the next texel.
void neighbours(const BoundTexture& t, const TextureLevel& level, const Spot& place, int64_t* first, int* fraction) {
  const int64_t sizes[3] = {level.width, level.height, level.depth};
  for (unsigned axis = 0; axis < place.axes; ++axis) {
    const double at = texelsOf(place.at[axis], sizes[axis], t.isNormalized || place.isFace, t.modes[axis]) - 0.5;
    const auto fixed = static_cast<int64_t>(std::floor(at * kFractions + 0.5));
    first[axis] = fixed >> 8;
    fraction[axis] = static_cast<int>(fixed & 255);
    // Beyond an edge there is no next texel.
    if (t.modes[axis] == CU_TR_ADDRESS_MODE_CLAMP && (first[axis] < 0 || first[axis] >= sizes[axis] - 1))
      fraction[axis] = 0;
  }
}

// The texels and weights of one sample.
struct Mixture {
  uint32_t parts[4][kMostCorners] = {};
  int weights[kMostCorners] = {};
  unsigned corners = 0;
};

// The texel at a position that is not filtered.
void findIndex(const BoundTexture& t, const TextureLevel& level, const Spot& place, int64_t* index) {
  const int64_t sizes[3] = {level.width, level.height, level.depth};
  for (unsigned axis = 0; axis < place.axes; ++axis) {
    index[axis] = place.isIndex ? place.index[axis]
                                : static_cast<int64_t>(std::floor(texelsOf(
                                      place.at[axis], sizes[axis], t.isNormalized || place.isFace, t.modes[axis])));
  }
}

void addLevel(Mixture& to, const BoundTexture& t, const TextureLevel& level, const Spot& place, int whole) {
  int64_t first[3] = {};
  int fraction[3] = {};
  const bool isFiltered = t.isFiltered && !place.isIndex;
  if (isFiltered) neighbours(t, level, place, first, fraction);
  else findIndex(t, level, place, first);
  const unsigned corners = isFiltered ? 1u << place.axes : 1;
  int* weights = to.weights + to.corners;
  if (isFiltered) findWeights(whole, place.axes, fraction, weights);
  else weights[0] = whole;
  for (unsigned corner = 0; corner < corners; ++corner) {
    if (weights[corner] == 0) continue;
    int64_t index[3] = {};
    for (unsigned axis = 0; axis < place.axes; ++axis) index[axis] = first[axis] + (corner >> axis & 1);
    const Texel texel = texelAt(t, level, place, index);
    for (unsigned part = 0; part < t.format.channels; ++part) to.parts[part][to.corners + corner] = texel.part[part];
  }
  to.corners += corners;
}

Texel sample(const BoundTexture& t, const Spot& place, float wanted) {
  const auto last = static_cast<double>(t.levels.size() - 1);
  double level = 0;
  if (last > 0 || wanted != 0) {
    level = static_cast<double>(wanted) + t.bias;
    level = level > t.least ? level : t.least;
    level = level < t.most ? level : t.most;
    level = level > 0 ? level < last ? level : last : 0;
  }
  Mixture mixture;
  // With anisotropy, levels are only blended in the middle half of the way between them. Samples of an H200 at each
  // quarter show this.
  if (t.isBlended && t.isSteep) {
    const double whole = std::floor(level), between = 2 * (level - whole) - 0.5;
    level = whole + (between < 0 ? 0 : between > 1 ? 1 : between);
  }
  const auto fixed =
      t.isBlended ? static_cast<size_t>(std::floor(level * kFractions + 0.5)) : static_cast<size_t>(level + 0.5) << 8;
  const int part = static_cast<int>(fixed & 255);
  addLevel(mixture, t, t.levels[fixed >> 8], place, kWhole - part);
  if (part != 0) addLevel(mixture, t, t.levels[(fixed >> 8) + 1], place, part);
  Texel out = {};
  for (unsigned at = 0; at < t.format.channels; ++at) {
    const bool isLinear = t.isSrgb && at < 3;
    for (unsigned corner = 0; isLinear && corner < mixture.corners; ++corner)
      mixture.parts[at][corner] = readAs(t, mixture.parts[at][corner], at);
    out.part[at] = isLinear ? mixHalf(mixture.parts[at], mixture.weights, mixture.corners)
                   : mixture.corners == 1
                       ? readAs(t, mixture.parts[at][0], at)
                       : mix(t.format, t.isReal, mixture.parts[at], mixture.weights, mixture.corners);
  }
  return out;
}

// The cube face that a direction hits, and the position on it. Multiplying by a reciprocal, as hardware does, may move
// the very edge just inside.
void onFace(Spot& place, const float* direction) {
  const float x = direction[0], y = direction[1], z = direction[2], ax = std::fabs(x), ay = std::fabs(y),
              az = std::fabs(z);
  float m = az, s = z < 0 ? -x : x, t = -y;
  int64_t face = z < 0 ? 5 : 4;
  if (ax > ay && ax > az) m = ax, s = x < 0 ? z : -z, t = -y, face = x < 0 ? 1 : 0;
  else if (ay > az) m = ay, s = x, t = y < 0 ? -z : z, face = y < 0 ? 3 : 2;
  const float over = 1 / m;
  place.axes = 2;
  place.isFace = true;
  place.at[0] = m == 0 ? 0 : (double{s * over} + 1) / 2;
  place.at[1] = m == 0 ? 0 : (double{t * over} + 1) / 2;
  place.layer = 6 * place.layer + face;
}

int64_t limited(int64_t index, int64_t size) { return index < 0 ? 0 : index >= size ? size - 1 : index; }

Spot spotOf(const Warp& warp, const uint32_t* words, const BoundTexture& t, int lane) {
  Spot place;
  const auto geometry = static_cast<Geometry>(words[textureGeometry]);
  const uint32_t* at = words + textureCoordinates;
  const bool isLayered = geometry == Geometry::lines || geometry == Geometry::planes || geometry == Geometry::cubes,
             isCube = geometry >= Geometry::cube;
  // The layer is unsigned, so -1 is clamped to the last layer.
  if (isLayered) place.layer = wordOf(warp, *at++, lane);
  place.axes = geometry == Geometry::line || geometry == Geometry::lines     ? 1
               : geometry == Geometry::plane || geometry == Geometry::planes ? 2
                                                                             : 3;
  place.isIndex = words[textureHasIntegers] != 0;
  for (unsigned axis = 0; axis < place.axes; ++axis) {
    if (place.isIndex) place.index[axis] = static_cast<int32_t>(wordOf(warp, at[axis], lane));
    else place.at[axis] = realOf(warp, at[axis], lane);
    const uint32_t offset = words[textureOffsets + axis];
    if (offset != kNone) place.offset[axis] = static_cast<int32_t>(wordOf(warp, offset, lane));
  }
  if (isCube) {
    place.layer = geometry == Geometry::cubes ? limited(place.layer, t.layers / 6) : 0;
    const float direction[3] = {static_cast<float>(place.at[0]), static_cast<float>(place.at[1]),
                                static_cast<float>(place.at[2])};
    onFace(place, direction);
  }
  place.layer = limited(place.layer, t.layers);
  // A 3-D access to an object with fewer dimensions ignores the third coordinate.
  if (place.axes == 3 && t.dimensions < 3) place.axes = 2;
  return place;
}

float levelOf(const Warp& warp, const uint32_t* words, const BoundTexture& t, const Spot& place, int lane) {
  const auto kind = static_cast<LevelOf>(words[textureLevelOf]);
  const uint32_t* at = words + textureLevel;
  if (kind == LevelOf::none) return 0;
  if (kind == LevelOf::given)
    return words[textureHasIntegers] != 0 ? static_cast<float>(static_cast<int32_t>(wordOf(warp, *at, lane)))
                                          : realOf(warp, *at, lane);
  const TextureLevel& whole = t.levels[0];
  const int64_t sizes[3] = {whole.width, whole.height, whole.depth};
  double longest = 0;
  for (unsigned direction = 0; direction < 2; ++direction) {
    double square = 0;
    for (unsigned axis = 0; axis < place.axes; ++axis) {
      const double step = realOf(warp, at[3 * direction + axis], lane) *
                          (t.isNormalized || place.isFace ? static_cast<double>(sizes[axis]) : 1);
      square += step * step;
    }
    longest = std::fmax(longest, std::sqrt(square));
  }
  return longest > 0 ? static_cast<float>(std::log2(longest)) : -1000.0f;
}

// One component of the four texels around a position, counter-clockwise from the lower left.
Texel gather(const BoundTexture& t, const Spot& place, uint32_t component) {
  int64_t first[3] = {};
  int fraction[3] = {};
  neighbours(t, t.levels[0], place, first, fraction);
  constexpr int64_t corners[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  Texel out;
  for (int part = 0; part < 4; ++part) {
    const int64_t index[3] = {first[0] + corners[part][0], first[1] + corners[part][1], 0};
    out.part[part] = readAs(t, texelAt(t, t.levels[0], place, index).part[component], component);
  }
  return out;
}

void putTexel(Warp& warp, const uint32_t* words, const BoundTexture& t, const Texel& texel, int lane) {
  const auto type = static_cast<Type>(words[textureType]);
  const auto half = [&](int part) -> uint32_t {
    return t.isReal ? plain::toHalf(plain::asFloat(texel.part[part])) : texel.part[part] & 0xffff;
  };
  for (uint32_t part = 0; part < words[textureCount]; ++part) {
    const auto at = static_cast<int>(part);
    const uint32_t value = type == Type::f16x2 ? half(2 * at) | half(2 * at + 1) << 16
                           : type == Type::f16 ? half(at)
                                               : texel.part[at];
    putBytes(warp, words[textureData + part], lane, value, words[textureBytes]);
  }
}

uint32_t answer(const Warp& warp, const uint32_t* words, const BoundTexture& t, int lane) {
  const bool hasLevel = static_cast<LevelOf>(words[textureLevelOf]) == LevelOf::given;
  const int64_t index = hasLevel ? static_cast<int32_t>(wordOf(warp, words[textureLevel], lane)) : 0;
  const TextureLevel& level = t.levels[static_cast<size_t>(limited(index, static_cast<int64_t>(t.levels.size())))];
  switch (static_cast<Question>(words[textureChoice])) {
    case Question::width: return static_cast<uint32_t>(level.width);
    case Question::height: return t.dimensions < 2 ? 0 : static_cast<uint32_t>(level.height);
    case Question::depth: return t.dimensions < 3 ? 0 : static_cast<uint32_t>(level.depth);
    case Question::arraySize: return static_cast<uint32_t>(t.layers);
    case Question::levels: return static_cast<uint32_t>(t.levels.size());
    case Question::samples: return 1;
    case Question::isNormalized: return t.isNormalized ? 1 : 0;
    case Question::filter: return t.isFiltered ? 1 : 0;
    default: break;
  }
  // PTX's numbers for CUDA's modes wrap, clamp to edge, mirror and clamp to border.
  constexpr uint32_t numbers[] = {0, 3, 1, 4};
  return numbers[t.modes[words[textureChoice] - static_cast<uint32_t>(Question::addressX)] & 3];
}

// The memory of a surface access, or null for an allowed access beyond the border.
char* surfaceMemory(const Warp& warp, const uint32_t* words, const BoundTexture& t, int lane, unsigned bytes) {
  Spot place = spotOf(warp, words, t, lane);
  const TextureLevel& level = t.levels[0];
  const auto geometry = static_cast<Geometry>(words[textureGeometry]);
  const bool isLayered = geometry == Geometry::lines || geometry == Geometry::planes;
  const int64_t row = level.width * static_cast<int64_t>(t.format.bytes());
  int64_t at[4] = {place.index[0], place.index[1], place.index[2],
                   isLayered ? static_cast<int32_t>(wordOf(warp, words[textureCoordinates], lane)) : 0};
  const int64_t sizes[4] = {row - bytes + 1, place.axes > 1 ? level.height : 1, place.axes > 2 ? level.depth : 1,
                            t.layers};
  if (at[0] % static_cast<int64_t>(bytes) != 0)
    throw Fault{CUDA_ERROR_MISALIGNED_ADDRESS,
                "byte " + std::to_string(at[0]) + " of a row of a surface is no multiple of " + std::to_string(bytes)};
  for (int axis = 0; axis < 4; ++axis) {
    if (at[axis] >= 0 && at[axis] < sizes[axis]) continue;
    const auto boundary = static_cast<Boundary>(words[textureBoundary]);
    if (boundary == Boundary::trap) throw Fault{CUDA_ERROR_LAUNCH_FAILED, "an access beyond the border of a surface"};
    if (boundary == Boundary::zero || sizes[axis] <= 0) return nullptr;
    at[axis] = limited(at[axis], sizes[axis]);
    if (axis == 0) at[0] -= at[0] % static_cast<int64_t>(bytes);
  }
  const int64_t slice = t.dimensions == 3 ? at[2] : at[3];
  return level.at(static_cast<size_t>(at[0]), static_cast<size_t>(at[1]), static_cast<size_t>(slice));
}

template <class T>
T combined(AtomicOp op, T a, T b) {
  switch (op) {
    case AtomicOp::add: return static_cast<T>(a + b);
    case AtomicOp::minimum: return a < b ? a : b;
    case AtomicOp::maximum: return a > b ? a : b;
    case AtomicOp::conjunction: return a & b;
    default: return a | b;
  }
}

// `T` is the type for comparisons, `U` the type of the words in memory.
template <class T, class U>
void reduceAt(char* at, AtomicOp op, uint64_t value) {
  auto* word = reinterpret_cast<U*>(at);
  U old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old,
                                      static_cast<U>(combined<T>(op, static_cast<T>(old), static_cast<T>(value))),
                                      false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

void reduceWord(char* at, AtomicOp op, Type type, uint64_t value) {
  switch (type) {
    case Type::s32:
      return op == AtomicOp::add ? reduceAt<uint32_t, uint32_t>(at, op, value)
                                 : reduceAt<int32_t, uint32_t>(at, op, value);
    case Type::s64:
      return op == AtomicOp::add ? reduceAt<uint64_t, uint64_t>(at, op, value)
                                 : reduceAt<int64_t, uint64_t>(at, op, value);
    case Type::u64:
    case Type::b64: return reduceAt<uint64_t, uint64_t>(at, op, value);
    default: return reduceAt<uint32_t, uint32_t>(at, op, value);
  }
}

void useSurface(Warp& warp, const uint32_t* words, const BoundTexture& t, TextureOp op, int lane) {
  const unsigned bytes = words[textureBytes], count = words[textureCount];
  char* at = surfaceMemory(warp, words, t, lane, bytes * count);
  if (op == TextureOp::reduce) {
    if (at != nullptr)
      reduceWord(at, static_cast<AtomicOp>(words[textureChoice]), static_cast<Type>(words[textureType]),
                 bytesOf(warp, words[textureData], lane, bytes));
    return;
  }
  for (unsigned part = 0; part < count; ++part) {
    uint64_t value = 0;
    if (op == TextureOp::load) {
      if (at != nullptr) memcpy(&value, at + part * bytes, bytes);
      putBytes(warp, words[textureData + part], lane, value, bytes);
    } else if (at != nullptr) {
      value = bytesOf(warp, words[textureData + part], lane, bytes);
      memcpy(at + part * bytes, &value, bytes);
    }
  }
}

}  // namespace

void runTexture(Warp& warp, const Instr& instr, uint32_t mask) {
  const uint32_t* words = warp.operands + instr.target;
  const auto op = static_cast<TextureOp>(words[textureOp]);
  const bool isSurface = op >= TextureOp::askSurface && op != TextureOp::askTexture;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const BoundTexture& t = boundTo(warp, bytesOf(warp, words[textureHandle], lane, 8), isSurface);
    if (op == TextureOp::askTexture || op == TextureOp::askSurface) {
      putBytes(warp, words[textureData], lane, answer(warp, words, t, lane), 4);
    } else if (isSurface) {
      useSurface(warp, words, t, op, lane);
    } else {
      const Spot place = spotOf(warp, words, t, lane);
      putTexel(warp, words, t,
               op == TextureOp::gather ? gather(t, place, words[textureChoice])
                                       : sample(t, place, levelOf(warp, words, t, place, lane)),
               lane);
    }
  }
  if (words[texturePredicate] == kNone) return;
  uint32_t is;
  memcpy(&is, warp.registers + words[texturePredicate], 4);
  is |= mask;  // the whole access is valid
  memcpy(warp.registers + words[texturePredicate], &is, 4);
}

}  // namespace shoal::ptx
