// Comparisons, selections, conversions, moves.
#include "decoder.h"

namespace shoal::ptx {

namespace {

constexpr std::string_view kComparisons[] = {".eq", ".ne",  ".lt",  ".le",  ".gt",  ".ge",  ".lo",  ".ls",  ".hi",
                                             ".hs", ".equ", ".neu", ".ltu", ".leu", ".gtu", ".geu", ".num", ".nan"};

}  // namespace

void Decoder::setPredicate() {
  Key key;
  key.op = Op::compare;
  int comparison = -1;
  for (int index = 0; index < 18; ++index) {
    if (take(kComparisons[index])) comparison = index;
  }
  if (comparison < 0) wrong("'" + nameOf() + "' names no comparison");
  key.extra = static_cast<uint8_t>(comparison);
  key.combine = take(".and")   ? Combine::conjunction
                : take(".or")  ? Combine::disjunction
                : take(".xor") ? Combine::exclusive
                               : Combine::none;
  key.ftz = take(".ftz");
  key.from = takeType();
  requireType(key.from, kWords | kBitTypes | kReals | kHalves);
  const size_t count = key.combine == Combine::none ? 3 : 4;
  requireOperands(count, count);
  finishModifiers();
  bool isNegated = false;
  const uint32_t c = count == 4 ? inputPredicate(operand(3), isNegated) : 0;
  const uint32_t a = input(operand(1), key.from), b = input(operand(2), key.from);
  const bool isPair = operand(0).kind == OperandKind::pair;
  const uint32_t p = outputPredicate(isPair ? operand(0).parts[0] : operand(0)),
                 q = isPair ? outputPredicate(operand(0).parts[1]) : kNoOperand;
  Instr& made = emit(key);
  made.to = p;
  made.a = a;
  made.b = b;
  made.c = q;
  made.d = c;
  made.combine = static_cast<uint8_t>(static_cast<unsigned>(key.combine) | (isNegated ? 4u : 0u));
}

void Decoder::setValue() {
  Key key;
  key.op = Op::compareToValue;
  int comparison = -1;
  for (int index = 0; index < 18; ++index) {
    if (take(kComparisons[index])) comparison = index;
  }
  if (comparison < 0) wrong("'" + nameOf() + "' names no comparison");
  key.extra = static_cast<uint8_t>(comparison);
  key.combine = take(".and")   ? Combine::conjunction
                : take(".or")  ? Combine::disjunction
                : take(".xor") ? Combine::exclusive
                               : Combine::none;
  key.ftz = take(".ftz");
  const Type to = takeType();
  key.from = takeType();
  requireType(to, bits(Type::u32, Type::s32, Type::f32, Type::f16, Type::bf16, Type::f16x2, Type::bf16x2, Type::u16,
                       Type::s16));
  requireType(key.from, kWords | kBitTypes | kReals | kHalves);
  const size_t count = key.combine == Combine::none ? 3 : 4;
  requireOperands(count, count);
  finishModifiers();
  bool isNegated = false;
  const uint32_t c = count == 4 ? inputPredicate(operand(3), isNegated) : 0;
  const uint32_t a = input(operand(1), key.from), b = input(operand(2), key.from), d = output(operand(0), to);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.d = c;
  made.combine = static_cast<uint8_t>(static_cast<unsigned>(key.combine) | (isNegated ? 4u : 0u));
  made.count = bytesOf(to) == 2 ? 2 : 4;
  switch (to) {
    case Type::f32: made.imm = 0x3f800000; break;
    case Type::f16: made.imm = 0x3c00; break;
    case Type::bf16: made.imm = 0x3f80; break;
    case Type::f16x2: made.imm = 0x3c003c00; break;
    case Type::bf16x2: made.imm = 0x3f803f80; break;
    default: made.imm = 0xffffffff; break;
  }
}

void Decoder::select() {
  Key key;
  key.op = Op::select;
  key.type = takeType();
  requireType(key.type, kWords | kBitTypes | kReals | bits(Type::f16, Type::bf16));
  requireOperands(4, 4);
  finishModifiers();
  bool isNegated = false;
  const uint32_t p = inputPredicate(operand(3), isNegated), a = input(operand(1), key.type),
                 b = input(operand(2), key.type), d = output(operand(0), key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = p;
  made.negated = isNegated ? 1 : 0;
}

void Decoder::selectSign() {
  Key key;
  key.op = Op::selectBySign;
  key.ftz = take(".ftz");
  key.type = takeType();
  key.from = takeType();
  requireType(key.type, kWords | kBitTypes | kReals);
  requireType(key.from, bits(Type::s32, Type::f32));
  requireOperands(4, 4);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), b = input(operand(2), key.type), c = input(operand(3), key.from),
                 d = output(operand(0), key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
}

void Decoder::testProperty() {
  Key key;
  key.op = Op::testProperty;
  constexpr std::string_view properties[] = {".finite", ".infinite", ".number", ".notanumber", ".normal", ".subnormal"};
  int property = -1;
  for (int index = 0; index < 6; ++index) {
    if (take(properties[index])) property = index;
  }
  key.type = takeType();
  requireType(key.type, kReals);
  if (property < 0) wrong("'" + nameOf() + "' names no property");
  requireOperands(2, 2);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), d = output(operand(0), Type::pred);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.property = static_cast<uint8_t>(property);
}

void Decoder::convert() {
  Key key;
  key.op = Op::convert;
  if (take(".pack")) return convertPack();
  key.rounding = takeRounding();
  key.ftz = take(".ftz");
  key.saturate = take(".sat");
  key.isRelu = take(".relu");
  const bool isFiniteOnly = take(".satfinite");
  key.type = takeType();
  key.from = takeType();
  constexpr uint64_t numbers = bits(Type::u8, Type::s8) | kWords | kReals | bits(Type::f16, Type::bf16);
  constexpr uint64_t tiny = bits(Type::e4m3x2, Type::e5m2x2, Type::e2m1x2, Type::e2m3x2, Type::e3m2x2, Type::ue8m0x2);
  const bool isPair = (bit(key.type) & (tiny | bits(Type::f16x2, Type::bf16x2))) != 0;
  if (isPair) {
    key.op = Op::convertPair;
    key.saturate = isFiniteOnly;
    requireType(key.from, tiny | bits(Type::f32, Type::f16x2, Type::bf16x2));
    const bool isScale = key.type == Type::ue8m0x2;
    if ((bit(key.type) & tiny) != 0 && (isScale ? key.rounding != Rounding::rz && key.rounding != Rounding::rp
                                                : key.rounding != Rounding::rn || !isFiniteOnly)) {
      wrong("'" + nameOf() + "' has a rounding its types have not, or does not saturate");
    }
    const size_t count = key.from == Type::f32 ? 3 : 2;
    requireOperands(count, count);
    finishModifiers();
    const uint32_t a = input(operand(1), key.from), b = count == 3 ? input(operand(2), key.from) : 0,
                   d = output(operand(0), key.type);
    const uint32_t packed = packKey(key);
    Instr& made = emit(key);
    made.to = d;
    made.a = a;
    made.b = b;
    made.target = packed;
    return;
  }
  requireOperands(2, 2);
  finishModifiers();
  if (isFiniteOnly && key.type != Type::tf32) return convertToFinite(key);
  if (key.type == Type::tf32) {
    key.saturate = isFiniteOnly;
    requireType(key.from, bit(Type::f32));
    const uint32_t a = input(operand(1), Type::b32), d = output(operand(0), Type::b32), packed = packKey(key);
    Instr& made = emit(key);
    made.to = d;
    made.a = a;
    made.target = packed;
    return;
  }
  requireType(key.type, numbers);
  requireType(key.from, numbers);
  const bool isToReal = isFloat(key.type), isFromReal = isFloat(key.from);
  const bool isNarrower =
      bytesOf(key.type) < bytesOf(key.from) || (bytesOf(key.type) == bytesOf(key.from) && key.type != key.from);
  if (isToReal && isFromReal && isNarrower && key.rounding == Rounding::none)
    wrong("'" + nameOf() + "' names no rounding");
  if (isToReal != isFromReal && key.rounding == Rounding::none) wrong("'" + nameOf() + "' names no rounding");
  if (!isToReal && !isFromReal && (key.rounding != Rounding::none || key.ftz))
    wrong("'" + nameOf() + "' has a modifier its types have not");
  // Between equal types, a rounding means rounding to an integer.
  if (isToReal && isFromReal && key.type == key.from && key.rounding != Rounding::none && key.rounding < Rounding::rni)
    wrong("'" + nameOf() + "' has a rounding its types have not");
  unsigned toBytes = 0, fromBytes = 0;
  uint32_t a, d;
  if (isFromReal && bytesOf(key.from) > 2) {
    a = input(operand(1), key.from);
    fromBytes = bytesOf(key.from);
  } else {
    a = anyInput(operand(1), bytesOf(key.from), fromBytes);
  }
  if (isToReal && bytesOf(key.type) > 2) {
    d = output(operand(0), key.type);
    toBytes = bytesOf(key.type);
  } else {
    d = anyOutput(operand(0), bytesOf(key.type), toBytes);
  }
  key.count = static_cast<uint8_t>(toBytes);
  key.extra = static_cast<uint8_t>(fromBytes);
  const uint32_t packed = packKey(key);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.target = packed;
  made.count = static_cast<uint8_t>(toBytes);
  made.fromBytes = static_cast<uint8_t>(fromBytes);
}

void Decoder::convertPack() {
  Key key;
  key.op = Op::convertPack;
  if (!take(".sat")) wrong("'" + nameOf() + "' must saturate");
  key.type = takeType();
  key.from = takeType();
  const Type third = takeType();
  requireType(key.type, bits(Type::u8, Type::s8, Type::u16, Type::s16));
  requireType(key.from, bit(Type::s32));
  const bool hasThird = third != Type::none;
  if (hasThird && (third != Type::b32 || bytesOf(key.type) != 1)) refuse();
  requireOperands(hasThird ? 4 : 3, hasThird ? 4 : 3);
  finishModifiers();
  const uint32_t a = input(operand(1), Type::s32), b = input(operand(2), Type::s32),
                 c = hasThird ? input(operand(3), Type::b32) : 0;
  const uint32_t d = output(operand(0), Type::b32), packed = packKey(key);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
  made.hasThird = hasThird;
  made.target = packed;
}

void Decoder::move() {
  Key key;
  key.op = Op::move;
  key.type = takeType();
  requireType(key.type, kWords | kBitTypes | kReals | kHalves | bits(Type::pred, Type::b128));
  requireOperands(2, 2);
  finishModifiers();
  const Operand &to = operand(0), &from = operand(1);
  if (key.type == Type::pred) {
    key.op = Op::predicateMove;
    bool isNegated = false;
    const uint32_t a = inputPredicate(from, isNegated), d = output(to, Type::pred);
    Instr& made = emit(key);
    made.to = d;
    made.a = a;
    made.negated = isNegated ? 1 : 0;
    return;
  }
  if (to.kind == OperandKind::vector || from.kind == OperandKind::vector) {
    const bool isPack = from.kind == OperandKind::vector;
    const Operand& list = isPack ? from : to;
    if ((isPack && to.kind == OperandKind::vector) || (list.parts.size() != 2 && list.parts.size() != 4))
      wrong("the parts of '" + nameOf() + "' do not fit");
    const auto bytes = bytesOf(key.type) / static_cast<unsigned>(list.parts.size());
    if (bytes == 0) wrong("the parts of '" + nameOf() + "' do not fit");
    const Type part = bytes == 1 ? Type::b8 : bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
    key.op = isPack ? Op::pack : Op::unpack;
    key.from = part;
    std::vector<uint32_t> parts;
    for (const Operand& each : list.parts)
      parts.push_back(isPack ? input(each, part) : each.kind == OperandKind::sink ? kNoOperand : output(each, part));
    const uint32_t other = isPack ? output(to, key.type) : input(from, key.type);
    const uint32_t start = keep(parts);
    Instr& made = emit(key);
    made.operands[isPack ? 0 : 1] = other;
    made.target = start;
    made.count = static_cast<uint8_t>(parts.size());
    return;
  }
  if (from.kind == OperandKind::variable && from.variable->space == Space::kernelParam) {
    if (bytesOf(key.type) != 8) wrong("an address does not fit '" + nameOf() + "'");
  }
  const uint32_t d = output(to, key.type);
  if (from.kind == OperandKind::special) {
    return readInto(d, static_cast<Special>(from.reg), static_cast<unsigned>(from.value), bytesOf(key.type), true);
  }
  const uint32_t a = input(from, key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
}

}  // namespace shoal::ptx
