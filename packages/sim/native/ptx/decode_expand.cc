// Instructions that decode to several simpler instructions.
#include "decoder.h"

namespace shoal::ptx {

// Emits one simpler instruction. Its operands are places. The result goes to `to`, or by default to a new temporary.
uint32_t Decoder::step(const Key& key, std::initializer_list<uint32_t> inputs, uint32_t to) {
  const bool isBetween = to == kNoOperand;
  if (isBetween) to = temporary(bytesOf(key.type));
  Instr& made = emit(key, !isBetween);
  made.to = to;
  size_t index = 1;
  for (uint32_t each : inputs) made.operands[index++] = each;
  return to;
}

uint32_t Decoder::bitStep(Op op, Type type, uint32_t a, uint32_t b, uint32_t to) {
  Key key;
  key.op = op;
  key.type = type;
  return step(key, {a, b}, to);
}

// add, sub, mul and fma of two f32 in a register.
void Decoder::eachOfTwo(Key key, size_t count) {
  uint32_t halves[4][2], results[2];
  for (size_t index = 1; index <= count; ++index) {
    const uint32_t from = input(operand(index), Type::b64);
    for (auto& half : halves[index]) half = temporary(4);
    Key split;
    split.op = Op::unpack;
    split.type = Type::b64;
    split.from = Type::b32;
    const uint32_t start = keep({halves[index][0], halves[index][1]});
    Instr& made = emit(split, false);
    made.a = from;
    made.target = start;
    made.count = 2;
  }
  key.type = Type::f32;
  for (size_t half = 0; half < 2; ++half)
    results[half] = count == 3 ? step(key, {halves[1][half], halves[2][half], halves[3][half]})
                               : step(key, {halves[1][half], halves[2][half]});
  Key join;
  join.op = Op::pack;
  join.type = Type::b64;
  join.from = Type::b32;
  const uint32_t to = output(operand(0), Type::b64), start = keep({results[0], results[1]});
  Instr& made = emit(join);
  made.to = to;
  made.target = start;
  made.count = 2;
}

// Converts a 16-bit float operand of an f32 instruction to f32.
uint32_t Decoder::widened(const Operand& from, Type type) {
  Key key;
  key.op = Op::convert;
  key.type = Type::f32;
  key.from = type;
  key.count = 4;
  key.extra = 2;
  const uint32_t a = input(from, type), packed = packKey(key), to = temporary(4);
  Instr& made = emit(key, false);
  made.to = to;
  made.a = a;
  made.target = packed;
  made.count = 4;
  made.fromBytes = 2;
  return to;
}

// cvt.satfinite to a 16-bit float: converts a pair and keeps its lower half.
void Decoder::convertToFinite(Key key) {
  requireType(key.type, bits(Type::f16, Type::bf16));
  requireType(key.from, bit(Type::f32));
  if (key.rounding != Rounding::rn && key.rounding != Rounding::rz)
    wrong("'" + nameOf() + "' has a rounding its types have not");
  key.op = Op::convertPair;
  key.saturate = true;
  key.type = key.type == Type::f16 ? Type::f16x2 : Type::bf16x2;
  const uint32_t a = input(operand(1), Type::f32), d = output(operand(0), Type::b16), both = temporary(4),
                 zero = constant(0, 4), packed = packKey(key), parts = keep({d, kNoOperand});
  Instr& made = emit(key, false);
  made.to = both;
  made.a = zero;
  made.b = a;
  made.target = packed;
  Key split;
  split.op = Op::unpack;
  split.type = Type::b32;
  split.from = Type::b16;
  Instr& last = emit(split);
  last.a = both;
  last.target = parts;
  last.count = 2;
}

// add.f32.f16 d, a, c and fma.f32.f16 d, a, b, c: all inputs except the last have 16 bits.
void Decoder::mixed(const Key& key, Type from, size_t count) {
  requireType(from, bits(Type::f16, Type::bf16));
  uint32_t inputs[3] = {};
  for (size_t index = 0; index < count; ++index)
    inputs[index] = index + 1 < count ? widened(operand(index + 1), from) : input(operand(index + 1), Type::f32);
  const uint32_t to = output(operand(0), Type::f32);
  if (count == 3) step(key, {inputs[0], inputs[1], inputs[2]}, to);
  else step(key, {inputs[0], inputs[1]}, to);
}

// min and max with three operands, with absolute values, and with the sign of the product.
void Decoder::extremes(Key key, bool isAbsolute, bool hasProductSign) {
  const size_t count = statement_->operands.size() - 1;
  uint32_t inputs[3] = {}, kept[2] = {};
  for (size_t index = 0; index < count; ++index) {
    inputs[index] = input(operand(index + 1), key.type);
    if (index < 2) kept[index] = inputs[index];
    if (!isAbsolute) continue;
    Key absolute;
    absolute.op = Op::absolute;
    absolute.type = key.type;
    inputs[index] = step(absolute, {inputs[index]});
  }
  const uint32_t to = output(operand(0), key.type);
  if (!hasProductSign) {
    if (count == 3) inputs[0] = step(key, {inputs[0], inputs[1]});
    step(key, {inputs[0], inputs[count - 1]}, to);
    return;
  }
  const unsigned bytes = bytesOf(key.type);
  const Type word = bytes == 2 ? Type::b16 : Type::b32;
  const uint64_t signs = bytes == 2 ? 0x8000 : isPacked(key.type) ? 0x80008000 : 0x80000000;
  const uint32_t sign = bitStep(Op::bitAnd, word, bitStep(Op::bitXor, word, kept[0], kept[1]), constant(signs, bytes));
  const uint32_t size = step(key, {inputs[0], inputs[1]});
  // A NaN must not get a sign. The minimum of a value and itself is the value, or the canonical NaN.
  const uint32_t signedSize = bitStep(Op::bitOr, word, size, sign);
  step(key, {signedSize, signedSize}, to);
}

// lop3.and and lop3.or also set a predicate if any bit is set.
void Decoder::lop3WithPredicate(bool isAnd) {
  requireType(takeType(), bit(Type::b32));
  requireOperands(6, 6);
  finishModifiers();
  if (operand(4).kind != OperandKind::integer || operand(0).kind != OperandKind::pair)
    wrong("an operand does not fit '" + nameOf() + "'");
  bool isNegated = false;
  const uint32_t other = inputPredicate(operand(5), isNegated), p = outputPredicate(operand(0).parts[1]);
  const uint32_t a = input(operand(1), Type::b32), b = input(operand(2), Type::b32), c = input(operand(3), Type::b32);
  const uint32_t result = temporary(4), d = output(operand(0).parts[0], Type::b32);
  Key key;
  key.op = Op::lop3;
  key.type = Type::b32;
  Instr& made = emit(key, false);
  made.to = result;
  made.a = a;
  made.b = b;
  made.c = c;
  made.imm = operand(4).value & 0xff;
  const uint32_t zero = constant(0, 4);
  Key compare;
  compare.op = Op::compare;
  compare.from = Type::b32;
  compare.extra = static_cast<uint8_t>(Comparison::ne);
  compare.combine = isAnd ? Combine::conjunction : Combine::disjunction;
  // Write the result first, because the predicate may be the guard.
  Key move;
  move.op = Op::move;
  move.type = Type::b32;
  step(move, {result}, d);
  Instr& test = emit(compare);
  test.to = p;
  test.a = result;
  test.b = zero;
  test.c = kNoOperand;
  test.d = other;
  test.combine = static_cast<uint8_t>(static_cast<unsigned>(compare.combine) | (isNegated ? 4u : 0u));
}

// Cache policies have no effect. A policy is a number that nothing reads.
void Decoder::createPolicy() {
  for (size_t index = 0; index < isTaken_.size(); ++index) isTaken_[index] = true;
  requireOperands(1, 4);
  Key move;
  move.op = Op::move;
  move.type = Type::b64;
  const uint32_t to = output(operand(0), Type::b64);
  step(move, {constant(0, 8)}, to);
}

}  // namespace shoal::ptx
