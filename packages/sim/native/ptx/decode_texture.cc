// tex, tld4, txq, suld, sust, sured and suq, on objects that are 64-bit values.
#include "decoder.h"
#include "texture.h"

namespace shoal::ptx {

namespace {

struct NamedGeometry {
  std::string_view name;
  Geometry geometry;
  size_t coordinates;  // the coordinates that count; further ones are ignored
};
constexpr NamedGeometry kGeometries[] = {{".1d", Geometry::line, 1},    {".2d", Geometry::plane, 2},
                                         {".3d", Geometry::volume, 3},  {".a1d", Geometry::lines, 2},
                                         {".a2d", Geometry::planes, 3}, {".cube", Geometry::cube, 3},
                                         {".acube", Geometry::cubes, 4}};

bool hasLayer(Geometry geometry) {
  return geometry == Geometry::lines || geometry == Geometry::planes || geometry == Geometry::cubes;
}

}  // namespace

// Reads the geometry (".2d" and others), stores it, and returns the number of coordinates.
size_t Decoder::takeGeometry(std::vector<uint32_t>& words) {
  for (auto& each : kGeometries) {
    if (!take(each.name)) continue;
    words[textureGeometry] = static_cast<uint32_t>(each.geometry);
    return each.coordinates;
  }
  refuse();  // multisample, or no geometry
}

// Stores both operands of "[object, {x, y}]".
void Decoder::keepTexture(std::vector<uint32_t>& words, const Operand& from, size_t count, Type type) {
  if (from.kind != OperandKind::address || from.parts.empty() || from.parts.size() > 3)
    wrong("'" + nameOf() + "' needs a texture or surface");
  if (from.parts.size() == 3) refuseFeature(statement_->line, "a sampler of its own in '" + nameOf() + "'");
  words[textureHandle] = input(from.parts[0], Type::u64);
  if (count == 0) return;
  if (from.parts.size() != 2) wrong("'" + nameOf() + "' needs coordinates");
  const Operand& at = from.parts[1];
  const bool isVector = at.kind == OperandKind::vector;
  if (isVector ? at.parts.size() < count || at.parts.size() > 4 : count != 1)
    wrong("'" + nameOf() + "' has another number of coordinates");
  const bool isLayered = hasLayer(static_cast<Geometry>(words[textureGeometry]));
  for (size_t index = 0; index < count; ++index) {
    words[textureCoordinates + index] =
        input(isVector ? at.parts[index] : at, isLayered && index == 0 ? Type::b32 : type);
  }
}

void Decoder::keepParts(std::vector<uint32_t>& words, size_t at, const Operand& from, size_t count, Type type) {
  const bool isVector = from.kind == OperandKind::vector;
  if (isVector ? from.parts.size() < count || from.parts.size() > 4 : count != 1)
    wrong("an operand does not fit '" + nameOf() + "'");
  for (size_t index = 0; index < count; ++index) words[at + index] = input(isVector ? from.parts[index] : from, type);
}

void Decoder::finishTexture(const std::vector<uint32_t>& words) {
  const uint32_t start = keep(words);
  emitHandler(runTexture).target = start;
}

void Decoder::texture() {
  std::vector<uint32_t> words(textureWords, kNoOperand);
  const bool isGather = statement_->opcode == "tld4";
  words[textureOp] = static_cast<uint32_t>(isGather ? TextureOp::gather : TextureOp::sample);
  LevelOf level = LevelOf::none;
  if (isGather) {
    const int component = take(".r") ? 0 : take(".g") ? 1 : take(".b") ? 2 : take(".a") ? 3 : -1;
    if (component < 0) wrong("'" + nameOf() + "' names no component");
    words[textureChoice] = static_cast<uint32_t>(component);
  } else if (take(".level")) {
    level = LevelOf::given;
  } else if (take(".grad")) {
    level = LevelOf::gradient;
  } else {
    take(".base");
  }
  words[textureLevelOf] = static_cast<uint32_t>(level);
  const size_t coordinates = takeGeometry(words);
  const auto geometry = static_cast<Geometry>(words[textureGeometry]);
  if (isGather && geometry != Geometry::plane && geometry != Geometry::planes) refuse();
  const bool isPair = take(".v2");
  if (!isPair && !take(".v4")) wrong("'" + nameOf() + "' gives four values");
  const Type given = takeType(), at = takeType();
  requireType(given, isPair ? bit(Type::f16x2) : bits(Type::u32, Type::s32, Type::f32, Type::f16));
  requireType(at, isGather ? bit(Type::f32) : bits(Type::s32, Type::f32));
  if (at == Type::s32 && (level == LevelOf::gradient || geometry >= Geometry::cube))
    wrong("'" + nameOf() + "' has no coordinates of integers");
  words[textureHasIntegers] = at == Type::s32 ? 1 : 0;
  words[textureCount] = isPair ? 2 : 4;
  words[textureBytes] = given == Type::f16 ? 2 : 4;
  words[textureType] = static_cast<uint32_t>(given);
  const size_t own = level == LevelOf::none ? 0 : level == LevelOf::given ? 1 : 2;
  requireOperands(2 + own, 4 + own);
  if (statement_->operands.size() == 4 + own)
    refuseFeature(statement_->line, "a comparison of depths in '" + nameOf() + "'");
  finishModifiers();
  keepTexture(words, operand(1), coordinates, at);
  const size_t axes = geometry == Geometry::line || geometry == Geometry::lines     ? 1
                      : geometry == Geometry::plane || geometry == Geometry::planes ? 2
                                                                                    : 3;
  if (level == LevelOf::given) keepParts(words, textureLevel, operand(2), 1, at);
  for (size_t index = 0; level == LevelOf::gradient && index < 2; ++index)
    keepParts(words, textureLevel + 3 * index, operand(2 + index), axes, Type::f32);
  if (statement_->operands.size() > 2 + own) {
    if (geometry >= Geometry::cube) wrong("'" + nameOf() + "' has no offsets");
    keepParts(words, textureOffsets, operand(2 + own), axes, Type::s32);
  }
  const Operand* to = &operand(0);
  if (to->kind == OperandKind::pair) {
    words[texturePredicate] = outputPredicate(to->parts[1]);
    to = &to->parts[0];
  }
  if (to->kind != OperandKind::vector || to->parts.size() != words[textureCount])
    wrong("the results of '" + nameOf() + "' do not fit");
  for (size_t index = 0; index < to->parts.size(); ++index) {
    if (to->parts[index].kind != OperandKind::sink)
      words[textureData + index] = output(to->parts[index], given == Type::f16 ? Type::b16 : Type::b32);
  }
  finishTexture(words);
}

// txq and suq.
void Decoder::askTexture() {
  std::vector<uint32_t> words(textureWords, kNoOperand);
  const bool isSurface = statement_->opcode == "suq", hasLevel = !isSurface && take(".level");
  words[textureOp] = static_cast<uint32_t>(isSurface ? TextureOp::askSurface : TextureOp::askTexture);
  words[textureLevelOf] = static_cast<uint32_t>(hasLevel ? LevelOf::given : LevelOf::none);
  constexpr std::pair<std::string_view, Question> names[] = {{".width", Question::width},
                                                             {".height", Question::height},
                                                             {".depth", Question::depth},
                                                             {".array_size", Question::arraySize},
                                                             {".num_mipmap_levels", Question::levels},
                                                             {".num_samples", Question::samples},
                                                             {".normalized_coords", Question::isNormalized},
                                                             {".filter_mode", Question::filter},
                                                             {".addr_mode_0", Question::addressX},
                                                             {".addr_mode_1", Question::addressY},
                                                             {".addr_mode_2", Question::addressZ}};
  bool isNamed = false;
  for (auto& each : names) {
    if (!take(each.first)) continue;
    words[textureChoice] = static_cast<uint32_t>(each.second);
    isNamed = each.second <= Question::arraySize || !isSurface;
  }
  if (!isNamed) refuse();
  requireType(takeType(), bit(Type::b32));
  requireOperands(hasLevel ? 3 : 2, hasLevel ? 3 : 2);
  finishModifiers();
  keepTexture(words, operand(1), 0, Type::none);
  if (hasLevel) words[textureLevel] = input(operand(2), Type::b32);
  words[textureData] = output(operand(0), Type::b32);
  finishTexture(words);
}

// suld, sust and sured.
void Decoder::surface() {
  std::vector<uint32_t> words(textureWords, kNoOperand);
  const bool isLoad = statement_->opcode == "suld", isReduction = statement_->opcode == "sured";
  words[textureOp] = static_cast<uint32_t>(isLoad        ? TextureOp::load
                                           : isReduction ? TextureOp::reduce
                                                         : TextureOp::store);
  if (!take(".b")) refuse();  // conversion by the surface's format
  if (isReduction) {
    constexpr std::pair<std::string_view, AtomicOp> names[] = {{".add", AtomicOp::add},
                                                               {".min", AtomicOp::minimum},
                                                               {".max", AtomicOp::maximum},
                                                               {".and", AtomicOp::conjunction},
                                                               {".or", AtomicOp::disjunction}};
    for (auto& each : names) {
      if (take(each.first)) words[textureChoice] = static_cast<uint32_t>(each.second);
    }
    if (words[textureChoice] == kNoOperand) wrong("'" + nameOf() + "' names no operation");
  }
  const size_t coordinates = takeGeometry(words);
  if (static_cast<Geometry>(words[textureGeometry]) >= Geometry::cube) refuse();
  takeScope();  // cache operators
  const unsigned count = isReduction ? 1 : take(".v2") ? 2 : take(".v4") ? 4 : 1;
  const Type type = takeType();
  requireType(type, isReduction ? bits(Type::u32, Type::s32, Type::b32, Type::u64, Type::s64, Type::b64)
                                : bits(Type::b8, Type::b16, Type::b32, Type::b64));
  const bool isTrap = take(".trap"), isClamp = !isTrap && take(".clamp");
  if (!isTrap && !isClamp && !take(".zero")) wrong("'" + nameOf() + "' does not say what is beyond the border");
  words[textureBoundary] = static_cast<uint32_t>(isTrap ? Boundary::trap : isClamp ? Boundary::clamp : Boundary::zero);
  words[textureHasIntegers] = 1;
  words[textureCount] = count;
  words[textureBytes] = bytesOf(type);
  words[textureType] = static_cast<uint32_t>(type);
  requireOperands(2, 2);
  finishModifiers();
  if (count * bytesOf(type) > 16) wrong("'" + nameOf() + "' moves too much");
  keepTexture(words, operand(isLoad ? 1 : 0), coordinates, Type::s32);
  const Operand& data = operand(isLoad ? 0 : 1);
  const bool isVector = data.kind == OperandKind::vector;
  if (isVector ? data.parts.size() != count : count != 1) wrong("an operand does not fit '" + nameOf() + "'");
  for (unsigned index = 0; index < count; ++index) {
    const Operand& each = isVector ? data.parts[index] : data;
    if (!isLoad) words[textureData + index] = input(each, type);
    else if (each.kind != OperandKind::sink) words[textureData + index] = output(each, type);
  }
  finishTexture(words);
}

}  // namespace shoal::ptx
