// Instructions on matrices that the lanes of a warp hold together.
#include "decoder.h"
#include "matrix.h"

namespace shoal::ptx {

namespace {

struct Shape {
  std::string_view name;
  int m, n, k;
};
constexpr Shape kShapes[] = {{".m8n8k4", 8, 8, 4},       {".m8n8k16", 8, 8, 16},     {".m8n8k32", 8, 8, 32},
                             {".m8n8k128", 8, 8, 128},   {".m16n8k4", 16, 8, 4},     {".m16n8k8", 16, 8, 8},
                             {".m16n8k16", 16, 8, 16},   {".m16n8k32", 16, 8, 32},   {".m16n8k64", 16, 8, 64},
                             {".m16n8k128", 16, 8, 128}, {".m16n8k256", 16, 8, 256}, {".m16n16k16", 16, 16, 16},
                             {".m8n32k16", 8, 32, 16},   {".m32n8k16", 32, 8, 16},   {".m16n16k8", 16, 16, 8}};

constexpr uint64_t kBytes = bits(Type::s8, Type::u8), kNibbles = bits(Type::s4, Type::u4),
                   kEights = bits(Type::e4m3, Type::e5m2);

// The shapes that mma and wmma support for each type.
bool hasShape(Type type, const Shape& shape, bool isWmma) {
  const int m = shape.m, n = shape.n, k = shape.k;
  const bool isLarge = k == 16 && ((m == 16 && n == 16) || (m == 8 && n == 32) || (m == 32 && n == 8));
  if (isWmma) {
    if ((bit(type) & (bits(Type::f16, Type::bf16) | kBytes)) != 0) return isLarge;
    if (type == Type::tf32) return m == 16 && n == 16 && k == 8;
    return m == 8 && n == 8 && k == (type == Type::f64 ? 4 : type == Type::b1 ? 128 : 32);
  }
  if (n != 8 || m > 16) return false;
  const bool isTall = m == 16;
  if (type == Type::f16) return isTall ? k == 8 || k == 16 : k == 4;
  if (type == Type::bf16) return isTall && (k == 8 || k == 16);
  if (type == Type::tf32) return isTall && (k == 4 || k == 8);
  if (type == Type::f64) return k == 4 || (isTall && (k == 8 || k == 16));
  if ((bit(type) & kBytes) != 0) return k == 16 || (isTall && k == 32);
  if ((bit(type) & kNibbles) != 0) return k == 32 || (isTall && k == 64);
  if (type == Type::b1) return k == 128 || (isTall && k == 256);
  return isTall && (k == 16 || k == 32);  // 8-bit floats
}

// The number of registers of a fragment, as written. Fragments of f16 repeat each element, as on the first devices with
// wmma.
size_t registersOf(Role role, Type type, const Shape& shape, bool isRepeated, int lanes = kLanes) {
  const int elements = role == Role::left    ? shape.m * shape.k
                       : role == Role::right ? shape.k * shape.n
                                             : shape.m * shape.n;
  return isRepeated && type == Type::f16 && role != Role::sum
             ? 8
             : static_cast<size_t>(elements / (lanes * perRegister(type)));
}

}  // namespace

int Decoder::takeShape() {
  for (size_t index = 0; index < sizeof kShapes / sizeof *kShapes; ++index) {
    if (take(kShapes[index].name)) return static_cast<int>(index);
  }
  wrong("'" + nameOf() + "' names no shape");
}

// Reads the registers of an operand and checks their number.
void Decoder::fragmentRegisters(const Operand& from, Type type, size_t count, bool isOutput,
                                std::vector<uint32_t>& to) {
  const bool isVector = from.kind == OperandKind::vector;
  const size_t given = isVector ? from.parts.size() : 1;
  if (given != count)
    wrong("'" + nameOf() + "' needs " + std::to_string(count) + " registers where " + std::to_string(given) +
          " are given");
  const Type reg = matrixBits(type) == 64 ? Type::f64 : Type::b32;
  for (size_t index = 0; index < count; ++index) {
    const Operand& each = isVector ? from.parts[index] : from;
    to.push_back(isOutput ? output(each, reg) : input(each, reg));
  }
}

// mma and wmma.mma. The fragments of both have the layout of mma.
void Decoder::matrix() {
  if (take(".sp") || take(".sp::ordered_metadata")) refuse();
  const bool isWmma = statement_->opcode == "wmma";
  if (isWmma && !take(".mma")) return fragment();
  Key key;
  key.op = Op::mma;
  uint32_t flags = 0;
  if (!take(".sync")) wrong("unknown instruction '" + nameOf() + "'");
  take(".aligned");
  const bool isAnd = take(".and");
  if (isAnd) flags |= matrixIsAnd;
  const bool hasBits = isAnd || take(".xor");
  if (hasBits && !take(".popc")) wrong("unknown instruction '" + nameOf() + "'");
  const Shape& shape = kShapes[takeShape()];
  // The layouts of A and B, in order.
  bool isColumns[2] = {false, true};
  int layouts = 0;
  for (size_t index = 0; index < isTaken_.size(); ++index) {
    const std::string_view word = statement_->modifiers[index];
    if (word != ".row" && word != ".col") continue;
    isTaken_[index] = true;
    if (layouts < 2) isColumns[layouts] = word == ".col";
    ++layouts;
  }
  if (layouts != 2) wrong("'" + nameOf() + "' names not two layouts");
  const Rounding rounding = takeRounding();
  if (take(".satfinite")) flags |= matrixSaturates;
  const Type d = takeType(), second = takeType(), third = takeType();
  const bool isShort = third == Type::none;  // wmma of f16 only names the types of the sums
  const Type a = isShort ? Type::f16 : second, b = isShort ? Type::f16 : third, c = isShort ? second : takeType();
  key.type = a;
  requireType(
      a, bits(Type::f16, Type::bf16, Type::tf32, Type::f64, Type::b1) | kBytes | kNibbles | (isWmma ? 0 : kEights));
  const uint64_t family = (bit(a) & kBytes) != 0     ? kBytes
                          : (bit(a) & kNibbles) != 0 ? kNibbles
                          : (bit(a) & kEights) != 0  ? kEights
                                                     : bit(a);
  requireType(b, family);
  const bool isInteger = (bit(a) & (kBytes | kNibbles | bit(Type::b1))) != 0,
             isHalfSum = a == Type::f16 || (bit(a) & kEights) != 0;
  const uint64_t sums = isInteger        ? bit(Type::s32)
                        : a == Type::f64 ? bit(Type::f64)
                        : isHalfSum      ? bits(Type::f16, Type::f32)
                                         : bit(Type::f32);
  requireType(c, sums);
  requireType(d, sums);
  const bool isQuads = !isWmma && a == Type::f16 && shape.k == 4;
  if (isShort && !isWmma) wrong("'" + nameOf() + "' names not four types");
  if (!isWmma && c != d && !(isQuads && d == Type::f32)) wrong("'" + nameOf() + "' has sums of two types");
  if (!hasShape(a, shape, isWmma)) wrong("'" + nameOf() + "' is no shape of its type");
  if (!isWmma && !isQuads && (isColumns[0] || !isColumns[1]))
    wrong("'" + nameOf() + "' must have A in rows and B in columns");
  if (hasBits != (a == Type::b1)) wrong("'" + nameOf() + "' has an operation on bits that its type has not, or none");
  if ((flags & matrixSaturates) != 0 && !isInteger) wrong("'" + nameOf() + "' cannot be saturated");
  if (rounding > Rounding::rp || (rounding != Rounding::none && a != Type::f64))
    wrong("'" + nameOf() + "' has a rounding its type has not");
  requireOperands(4, 4);
  finishModifiers();
  if (isQuads)
    flags |= matrixIsQuads + (isColumns[0] ? uint32_t{matrixIsLeftColumns} : 0u) +
             (isColumns[1] ? 0u : uint32_t{matrixIsRightRows});
  std::vector<uint32_t> words = {static_cast<uint32_t>(shape.m), static_cast<uint32_t>(shape.n),
                                 static_cast<uint32_t>(shape.k), static_cast<uint32_t>(a),
                                 static_cast<uint32_t>(b),       static_cast<uint32_t>(c),
                                 static_cast<uint32_t>(d),       flags};
  const int lanes = isQuads ? 8 : kLanes;
  fragmentRegisters(operand(0), d, registersOf(Role::sum, d, shape, false, lanes), true, words);
  for (const Role role : {Role::left, Role::right}) {
    std::vector<uint32_t> all;
    const Type type = role == Role::left ? a : b;
    fragmentRegisters(operand(role == Role::left ? 1 : 2), type, registersOf(role, type, shape, isWmma, lanes), false,
                      all);
    // Repeated elements are read once.
    all.resize(registersOf(role, type, shape, false, lanes));
    words.insert(words.end(), all.begin(), all.end());
  }
  fragmentRegisters(operand(3), c, registersOf(Role::sum, c, shape, false, lanes), false, words);
  const uint32_t start = keep(words), members = constant(~0u, 4);
  Instr& made = emit(key);
  made.flow = Flow::warpSync;
  made.members = members;
  made.target = start;
  made.rounding = static_cast<uint8_t>(rounding);
}

// wmma.load.a, .b, .c and wmma.store.d.
void Decoder::fragment() {
  Key key;
  const bool isStore = take(".store");
  if (!isStore && !take(".load")) wrong("unknown instruction '" + nameOf() + "'");
  key.op = isStore ? Op::storeMatrix : Op::loadMatrix;
  const bool isLeft = take(".a"), isRight = take(".b"), isSum = isStore ? take(".d") : take(".c");
  if (isLeft + isRight + isSum != 1 || (isStore && !isSum) || !take(".sync"))
    wrong("unknown instruction '" + nameOf() + "'");
  take(".aligned");
  const Role role = isLeft ? Role::left : isRight ? Role::right : Role::sum;
  const bool isColumns = take(".col");
  if (!isColumns && !take(".row")) wrong("'" + nameOf() + "' names no layout");
  const Shape& shape = kShapes[takeShape()];
  const Space space = takeSpace(Space::generic);
  key.space = space == Space::cluster ? Space::shared : space == Space::global ? Space::generic : space;
  if (key.space != Space::shared && key.space != Space::generic)
    wrong("'" + nameOf() + "' has a state space it cannot reach");
  key.type = takeType();
  constexpr uint64_t factors = bits(Type::f16, Type::bf16, Type::tf32, Type::f64, Type::b1) | kBytes | kNibbles;
  requireType(key.type, isSum ? bits(Type::f16, Type::f32, Type::f64, Type::s32) : factors);
  bool isShape = false;
  for (const Type type : {Type::f16, Type::bf16, Type::tf32, Type::f64, Type::s8, Type::s4, Type::b1}) {
    const bool isOne = isSum ? (type == Type::f64) == (key.type == Type::f64)
                             : type == key.type || (type == Type::s8 && key.type == Type::u8) ||
                                   (type == Type::s4 && key.type == Type::u4);
    isShape = isShape || (isOne && hasShape(type, shape, true));
  }
  if (!isShape) wrong("'" + nameOf() + "' is no shape of its type");
  const int elementBits = matrixBits(key.type), rows = role == Role::right ? shape.k : shape.m,
            columns = role == Role::left ? shape.k : shape.n;
  if (elementBits < 8 && isColumns == isLeft) wrong("'" + nameOf() + "' must have A in rows and B in columns");
  requireOperands(2, 3);
  finishModifiers();
  const size_t count = registersOf(role, key.type, shape, true);
  std::vector<uint32_t> words = {static_cast<uint32_t>(role),
                                 static_cast<uint32_t>(rows),
                                 static_cast<uint32_t>(columns),
                                 static_cast<uint32_t>(elementBits),
                                 static_cast<uint32_t>(perRegister(key.type)),
                                 isColumns ? 1u : 0u};
  fragmentRegisters(operand(isStore ? 1 : 0), key.type, count, !isStore, words);
  const Address at = address(operand(isStore ? 0 : 1), space);
  if (at.isFrameRelative || at.space == Space::kernelParam)
    wrong("'" + nameOf() + "' has a state space it cannot reach");
  const uint32_t stride = statement_->operands.size() == 3
                              ? input(operand(2), Type::u32)
                              : constant(static_cast<uint64_t>(isColumns ? rows : columns), 4);
  const uint32_t start = keep(words), members = constant(~0u, 4);
  Instr& made = emit(key);
  setAddress(made, at);
  made.flow = Flow::warpSync;
  made.b = stride;
  made.members = members;
  made.target = start;
  made.count = static_cast<uint8_t>(count);
}

// ldmatrix and stmatrix.
void Decoder::loadMatrix() {
  Key key;
  const bool isStore = statement_->opcode == "stmatrix";
  key.op = isStore ? Op::storeMatrix : Op::loadMatrix;
  if (!take(".sync")) wrong("unknown instruction '" + nameOf() + "'");
  take(".aligned");
  if (!take(".m8n8")) refuse();
  const size_t count = take(".x4") ? 4 : take(".x2") ? 2 : 1;
  if (count == 1 && !take(".x1")) wrong("'" + nameOf() + "' names no number of matrices");
  key.extra = take(".trans") ? 1 : 0;
  const Space space = takeSpace(Space::generic);
  key.space = space == Space::cluster ? Space::shared : space;
  if (key.space != Space::shared && key.space != Space::generic)
    wrong("'" + nameOf() + "' has a state space it cannot reach");
  const Type type = takeType();
  if (type != Type::b16) refuse();
  requireOperands(2, 2);
  finishModifiers();
  std::vector<uint32_t> registers;
  fragmentRegisters(operand(isStore ? 1 : 0), Type::b32, count, !isStore, registers);
  const Address at = address(operand(isStore ? 0 : 1), space);
  if (at.isFrameRelative || at.space == Space::kernelParam)
    wrong("'" + nameOf() + "' has a state space it cannot reach");
  const uint32_t start = keep(registers), members = constant(~0u, 4);
  Instr& made = emit(key);
  setAddress(made, at);
  made.flow = Flow::warpSync;
  made.members = members;
  made.target = start;
  made.count = static_cast<uint8_t>(count);
}

void Decoder::moveMatrix() {
  Key key;
  key.op = Op::moveMatrix;
  if (!take(".sync")) wrong("unknown instruction '" + nameOf() + "'");
  take(".aligned");
  if (!take(".m8n8") || !take(".trans") || takeType() != Type::b16) wrong("unknown instruction '" + nameOf() + "'");
  requireOperands(2, 2);
  finishModifiers();
  const uint32_t a = input(operand(1), Type::b32), d = output(operand(0), Type::b32), members = constant(~0u, 4);
  Instr& made = emit(key);
  made.flow = Flow::warpSync;
  made.to = d;
  made.a = a;
  made.members = members;
}

}  // namespace shoal::ptx
