// Arithmetic, logic, shifts and bit fields.
#include "decoder.h"

namespace shoal::ptx {

namespace {

bool isReal(Type type) { return (bit(type) & (kReals | kHalves)) != 0; }

}  // namespace

// Operands d, a, b or d, a, of one type.
void Decoder::arithmetic() {
  Key key;
  key.op = entries().at(statement_->opcode).op;
  key.rounding = takeRounding();
  key.ftz = take(".ftz");
  key.saturate = take(".sat");
  key.isNanPassed = take(".NaN");
  key.isRelu = take(".relu");
  key.isApproximate = take(".approx") || take(".full");
  const bool isExtreme = key.op == Op::minimum || key.op == Op::maximum, hasProductSign = isExtreme && take(".xorsign"),
             isAbsolute = isExtreme && take(".abs");
  if (take(".cc")) {
    key.op = key.op == Op::add ? Op::addCarry : Op::subBorrow;
    key.extra = 2;
  }
  key.type = takeType();
  const bool isSum = key.op == Op::add || key.op == Op::sub;
  const Type narrow = isSum && key.type == Type::f32 ? takeType() : Type::none;
  if (narrow != Type::none || (isSum && key.type == Type::f32x2)) {
    requireOperands(3, 3);
    finishModifiers();
    return narrow == Type::none ? eachOfTwo(key, 2) : mixed(key, narrow, 2);
  }
  if (isAbsolute || hasProductSign || (isExtreme && key.type == Type::f32 && statement_->operands.size() == 4)) {
    requireType(key.type, bit(Type::f32) | (hasProductSign ? kHalves : 0));
    requireOperands(hasProductSign ? 3 : 4, hasProductSign ? 3 : 4);
    if (hasProductSign && !isAbsolute) wrong("'" + nameOf() + "' has a modifier its type has not");
    finishModifiers();
    return extremes(key, isAbsolute, hasProductSign);
  }
  uint64_t allowed = kWords;
  switch (key.op) {
    case Op::add: allowed |= kReals | kHalves | bits(Type::u16x2, Type::s16x2); break;
    case Op::sub: allowed |= kReals | kHalves; break;
    case Op::divide: allowed |= kReals; break;
    case Op::minimum:
    case Op::maximum: allowed |= kReals | kHalves | bits(Type::u16x2, Type::s16x2); break;
    case Op::absolute:
    case Op::negate: allowed = bits(Type::s16, Type::s32, Type::s64) | kReals | kHalves; break;
    case Op::addCarry:
    case Op::subBorrow: allowed = bits(Type::u32, Type::s32, Type::u64, Type::s64, Type::b32, Type::b64); break;
    default: break;
  }
  requireType(key.type, allowed);
  if (key.op == Op::divide && key.type == Type::f32 && !key.isApproximate && key.rounding == Rounding::none)
    wrong("'" + nameOf() + "' names no rounding");
  if (!isReal(key.type) && (key.rounding != Rounding::none || key.ftz || (key.saturate && key.type != Type::s32)))
    wrong("'" + nameOf() + "' has a modifier its type has not");
  const bool hasOne = key.op == Op::absolute || key.op == Op::negate;
  requireOperands(hasOne ? 2 : 3, hasOne ? 2 : 3);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), b = hasOne ? 0 : input(operand(2), key.type);
  const uint32_t d = output(operand(0), key.type);
  if (key.op == Op::addCarry || key.op == Op::subBorrow) {
    if (carryFlag_ == kNoOperand) carryFlag_ = temporary(0);
  }
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.d = carryFlag_;
}

// The further parts of a multi-word sum: addc, subc and madc read the carry, and write it with .cc.
void Decoder::carry() {
  Key key;
  key.op = entries().at(statement_->opcode).op;
  key.extra = take(".cc") ? 3 : 1;
  if (key.op == Op::madLowCarry) {
    if (take(".hi")) key.op = Op::madHighCarry;
    else if (!take(".lo")) wrong("'" + nameOf() + "' names no half");
  }
  key.type = takeType();
  requireType(key.type, bits(Type::u32, Type::s32, Type::u64, Type::s64, Type::b32, Type::b64));
  const bool isMad = key.op == Op::madLowCarry || key.op == Op::madHighCarry;
  requireOperands(isMad ? 4 : 3, isMad ? 4 : 3);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), b = input(operand(2), key.type),
                 c = isMad ? input(operand(3), key.type) : 0;
  const uint32_t d = output(operand(0), key.type);
  if (carryFlag_ == kNoOperand) carryFlag_ = temporary(0);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
  made.d = carryFlag_;
}

void Decoder::multiply() {
  Key key;
  const bool is24 = statement_->opcode == "mul24";
  const bool isLow = take(".lo"), isHigh = take(".hi"), isWide = take(".wide");
  key.rounding = takeRounding();
  key.ftz = take(".ftz");
  key.saturate = take(".sat");
  key.type = takeType();
  if (key.type == Type::f32x2) {
    requireOperands(3, 3);
    finishModifiers();
    key.op = Op::multiply;
    return eachOfTwo(key, 2);
  }
  if (isReal(key.type)) key.op = Op::multiply;
  else if (is24) key.op = isHigh ? Op::mul24High : Op::mul24Low;
  else key.op = isWide ? Op::mulWide : isHigh ? Op::mulHigh : Op::mulLow;
  requireType(key.type, is24                    ? bits(Type::u32, Type::s32)
                        : key.op == Op::mulWide ? bits(Type::u16, Type::s16, Type::u32, Type::s32)
                                                : kWords | kReals | kHalves);
  if (!isReal(key.type) && isLow + isHigh + isWide != 1)
    wrong("'" + nameOf() + "' must name one of .lo, .hi and .wide");
  requireOperands(3, 3);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), b = input(operand(2), key.type);
  Type result = key.type;
  if (key.op == Op::mulWide) result = bytesOf(key.type) == 2 ? Type::u32 : Type::u64;
  const uint32_t d = output(operand(0), result);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
}

void Decoder::multiplyAdd() {
  Key key;
  const bool is24 = statement_->opcode == "mad24";
  const bool isLow = take(".lo"), isHigh = take(".hi"), isWide = take(".wide"), isCarried = take(".cc");
  key.rounding = takeRounding();
  key.ftz = take(".ftz");
  key.saturate = take(".sat");
  key.type = takeType();
  if (isReal(key.type)) key.op = Op::fused;
  else if (is24) key.op = isHigh ? Op::mad24High : Op::mad24Low;
  else key.op = isWide ? Op::madWide : isHigh ? Op::madHigh : Op::madLow;
  if (isCarried) {
    key.op = isHigh ? Op::madHighCarry : Op::madLowCarry;
    key.extra = 2;
    if (carryFlag_ == kNoOperand) carryFlag_ = temporary(0);
  }
  requireType(key.type, is24                    ? bits(Type::u32, Type::s32)
                        : key.op == Op::madWide ? bits(Type::u16, Type::s16, Type::u32, Type::s32)
                        : isCarried             ? bits(Type::u32, Type::s32, Type::u64, Type::s64)
                                                : kWords | kReals);
  if (!isReal(key.type) && isLow + isHigh + isWide != 1)
    wrong("'" + nameOf() + "' must name one of .lo, .hi and .wide");
  if (!isReal(key.type) && key.saturate && !(isHigh && key.type == Type::s32))
    wrong("'" + nameOf() + "' cannot be saturated");
  requireOperands(4, 4);
  finishModifiers();
  Type result = key.type;
  if (key.op == Op::madWide) result = bytesOf(key.type) == 2 ? Type::u32 : Type::u64;
  const uint32_t a = input(operand(1), key.type), b = input(operand(2), key.type), c = input(operand(3), result);
  const uint32_t d = output(operand(0), result);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
  made.d = carryFlag_;
}

void Decoder::fusedArithmetic() {
  Key key;
  key.op = Op::fused;
  key.rounding = takeRounding();
  key.ftz = take(".ftz");
  key.saturate = take(".sat");
  key.isRelu = take(".relu");
  key.type = takeType();
  const Type narrow = key.type == Type::f32 ? takeType() : Type::none;
  if (key.type != Type::f32x2) requireType(key.type, kReals | kHalves);
  if (key.rounding == Rounding::none) wrong("'" + nameOf() + "' names no rounding");
  if (key.type == Type::f32x2 || narrow != Type::none) {
    requireOperands(4, 4);
    finishModifiers();
    return narrow == Type::none ? eachOfTwo(key, 3) : mixed(key, narrow, 3);
  }
  requireOperands(4, 4);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), b = input(operand(2), key.type), c = input(operand(3), key.type);
  const uint32_t d = output(operand(0), key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
}

void Decoder::unaryFloat() {
  Key key;
  key.op = entries().at(statement_->opcode).op;
  key.isApproximate = take(".approx");
  key.rounding = takeRounding();
  key.ftz = take(".ftz");
  key.type = takeType();
  uint64_t allowed = bit(Type::f32);
  if (key.op == Op::reciprocal || key.op == Op::squareRoot || key.op == Op::reciprocalRoot) allowed |= bit(Type::f64);
  if (key.op == Op::exp2 || key.op == Op::tanh) allowed |= kHalves;
  requireType(key.type, allowed);
  const bool canRound = key.op == Op::reciprocal || key.op == Op::squareRoot;
  if (!key.isApproximate && (key.rounding == Rounding::none || !canRound))
    wrong("'" + nameOf() + "' names no rounding, and is not .approx");
  requireOperands(2, 2);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), d = output(operand(0), key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
}

void Decoder::unaryBits() {
  Key key;
  key.op = entries().at(statement_->opcode).op;
  if (take(".shiftamt")) key.op = Op::bfindShift;
  key.type = takeType();
  const bool isFind = statement_->opcode == "bfind";
  requireType(key.type, isFind ? bits(Type::u32, Type::u64, Type::s32, Type::s64) : bits(Type::b32, Type::b64));
  requireOperands(2, 2);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), d = output(operand(0), key.op == Op::brev ? key.type : Type::u32);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
}

void Decoder::logic() {
  Key key;
  key.op = entries().at(statement_->opcode).op;
  key.type = takeType();
  requireType(key.type, kBitTypes | (key.op == Op::logicalNot ? 0 : bit(Type::pred)));
  const bool hasOne = key.op == Op::bitNot || key.op == Op::logicalNot;
  requireOperands(hasOne ? 2 : 3, hasOne ? 2 : 3);
  finishModifiers();
  if (key.type == Type::pred) {
    key.op = key.op == Op::bitAnd   ? Op::predicateAnd
             : key.op == Op::bitOr  ? Op::predicateOr
             : key.op == Op::bitXor ? Op::predicateXor
                                    : Op::predicateNot;
    bool isANegated = false, isBNegated = false;
    const uint32_t a = inputPredicate(operand(1), isANegated), b = hasOne ? 0 : inputPredicate(operand(2), isBNegated);
    const uint32_t d = output(operand(0), Type::pred);
    Instr& made = emit(key);
    made.to = d;
    made.a = a;
    made.b = b;
    made.negated = static_cast<uint8_t>((isANegated ? 1 : 0) | (isBNegated ? 2 : 0));
    return;
  }
  const uint32_t a = input(operand(1), key.type), b = hasOne ? 0 : input(operand(2), key.type),
                 d = output(operand(0), key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
}

void Decoder::shift() {
  Key key;
  key.op = entries().at(statement_->opcode).op;
  key.type = takeType();
  requireType(key.type, key.op == Op::shiftLeft ? kBitTypes : kBitTypes | kWords);
  requireOperands(3, 3);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), b = input(operand(2), Type::u32), d = output(operand(0), key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
}

void Decoder::funnel() {
  Key key;
  const bool isLeft = take(".l");
  if (!isLeft && !take(".r")) wrong("'" + nameOf() + "' names no direction");
  key.op = isLeft ? Op::funnelLeft : Op::funnelRight;
  key.extra = take(".wrap") ? 1 : 0;
  if (key.extra == 0 && !take(".clamp")) wrong("'" + nameOf() + "' is neither .wrap nor .clamp");
  key.type = takeType();
  requireType(key.type, bit(Type::b32));
  requireOperands(4, 4);
  finishModifiers();
  const uint32_t a = input(operand(1), Type::b32), b = input(operand(2), Type::b32), c = input(operand(3), Type::u32),
                 d = output(operand(0), Type::b32);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
}

void Decoder::lop3() {
  Key key;
  key.op = Op::lop3;
  const bool isAnd = take(".and");
  if (isAnd || take(".or")) return lop3WithPredicate(isAnd);
  key.type = takeType();
  requireType(key.type, bit(Type::b32));
  requireOperands(5, 5);
  finishModifiers();
  if (operand(4).kind != OperandKind::integer) wrong("the table of 'lop3' must be a number");
  const uint32_t a = input(operand(1), Type::b32), b = input(operand(2), Type::b32), c = input(operand(3), Type::b32),
                 d = output(operand(0), Type::b32);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
  made.imm = operand(4).value & 0xff;
}

void Decoder::permute() {
  Key key;
  key.op = Op::permute;
  key.type = takeType();
  requireType(key.type, bit(Type::b32));
  constexpr std::string_view modes[] = {".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"};
  for (uint8_t index = 0; index < 6; ++index) {
    if (take(modes[index])) key.extra = static_cast<uint8_t>(index + 1);
  }
  requireOperands(4, 4);
  finishModifiers();
  const uint32_t a = input(operand(1), Type::b32), b = input(operand(2), Type::b32), c = input(operand(3), Type::b32),
                 d = output(operand(0), Type::b32);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
}

void Decoder::dot() {
  Key key;
  key.op = entries().at(statement_->opcode).op;
  if (take(".hi")) key.op = Op::dp2aHigh;
  else take(".lo");
  key.type = takeType();
  key.from = takeType();
  requireType(key.type, bits(Type::u32, Type::s32));
  requireType(key.from, bits(Type::u32, Type::s32));
  requireOperands(4, 4);
  finishModifiers();
  const uint32_t a = input(operand(1), Type::b32), b = input(operand(2), Type::b32), c = input(operand(3), Type::b32),
                 d = output(operand(0), Type::b32);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
}

void Decoder::field() {
  Key key;
  key.op = entries().at(statement_->opcode).op;
  key.type = takeType();
  const bool isInsert = key.op == Op::bfi;
  requireType(key.type, isInsert ? bits(Type::b32, Type::b64) : bits(Type::u32, Type::u64, Type::s32, Type::s64));
  requireOperands(isInsert ? 5 : 4, isInsert ? 5 : 4);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), b = input(operand(2), isInsert ? key.type : Type::u32),
                 c = input(operand(3), Type::u32);
  const uint32_t e = isInsert ? input(operand(4), Type::u32) : 0, d = output(operand(0), key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
  made.d = e;
}

void Decoder::sad() {
  Key key;
  key.op = Op::sad;
  key.type = takeType();
  requireType(key.type, kWords);
  requireOperands(4, 4);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), b = input(operand(2), key.type), c = input(operand(3), key.type),
                 d = output(operand(0), key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
}

void Decoder::extend() {
  Key key;
  key.op = entries().at(statement_->opcode).op;
  key.extra = take(".wrap") ? 1 : 0;
  if (key.extra == 0 && !take(".clamp")) wrong("'" + nameOf() + "' is neither .wrap nor .clamp");
  key.type = takeType();
  requireType(key.type, key.op == Op::bmsk ? bit(Type::b32) : bits(Type::u32, Type::s32));
  requireOperands(3, 3);
  finishModifiers();
  const uint32_t a = input(operand(1), Type::b32), b = input(operand(2), Type::b32), d = output(operand(0), Type::b32);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
}

void Decoder::findNth() {
  Key key;
  key.op = Op::fns;
  key.type = takeType();
  requireType(key.type, bit(Type::b32));
  requireOperands(4, 4);
  finishModifiers();
  const uint32_t a = input(operand(1), Type::b32), b = input(operand(2), Type::b32), c = input(operand(3), Type::s32),
                 d = output(operand(0), Type::b32);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
}

void Decoder::copySign() {
  Key key;
  key.op = Op::copySign;
  key.type = takeType();
  requireType(key.type, kReals);
  requireOperands(3, 3);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), b = input(operand(2), key.type), d = output(operand(0), key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
}

}  // namespace shoal::ptx
