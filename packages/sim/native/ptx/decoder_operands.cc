// Operands: register places, constants, addresses, special registers.
#include <cstring>

#include "decoder.h"

namespace shoal::ptx {

namespace {

// In a register, a one-byte lane takes two bytes.
unsigned laneBytes(Type type) {
  const unsigned bytes = bytesOf(type);
  return bytes == 1 ? 2 : bytes;
}

constexpr uint32_t kMostFrameBytes = 64u << 20;

}  // namespace

uint32_t Decoder::temporary(unsigned bytes) {
  // A predicate has one bit per lane, so it takes one word.
  const uint32_t size = bytes == 0 ? 4 : bytes * kLanes;
  const uint32_t alignment = bytes == 0 ? 4 : 64;
  frameBytes_ = (frameBytes_ + alignment - 1) & ~(alignment - 1);
  const uint32_t at = frameBytes_;
  frameBytes_ += size;
  if (frameBytes_ > kMostFrameBytes) wrong("the function has too many registers");
  return at;
}

uint32_t Decoder::place(uint32_t index) {
  uint32_t& at = places_[index];
  if (at == kNoOperand) at = temporary(laneBytes(function_->registers[index]));
  return at;
}

uint32_t Decoder::constant(uint64_t bits, unsigned bytes) {
  if (bytes < 8 && bytes != 0) bits &= (uint64_t{1} << 8 * bytes) - 1;
  auto [found, isNew] = constants_.try_emplace({bits, bytes}, 0);
  if (!isNew) return found->second;
  auto& pool = program_.constantBytes;
  const size_t at = (pool.size() + 63) & ~size_t{63};
  if (at > kMostFrameBytes) wrong("the module has too many constants");
  if (bytes == 0) {  // a predicate
    const uint32_t all = bits != 0 ? ~0u : 0;
    pool.resize(at + 4);
    memcpy(pool.data() + at, &all, 4);
  } else {
    pool.resize(at + bytes * kLanes);
    const uint64_t halves[2] = {bits, static_cast<int64_t>(bits) < 0 ? ~uint64_t{0} : 0};
    for (int lane = 0; lane < kLanes; ++lane)
      memcpy(pool.data() + at + bytes * static_cast<unsigned>(lane), halves, bytes);
  }
  return found->second = static_cast<uint32_t>(at) | kConstant;
}

uint64_t Decoder::bitsOf(const Operand& from, Type type) const {
  const auto bits = static_cast<uint64_t>(from.value);
  if (from.kind == OperandKind::integer) {
    if (type == Type::f32) {
      const float value = static_cast<float>(from.value);
      uint32_t out;
      memcpy(&out, &value, 4);
      return out;
    }
    if (type == Type::f64) {
      const double value = static_cast<double>(from.value);
      uint64_t out;
      memcpy(&out, &value, 8);
      return out;
    }
    return bits;
  }
  const bool isDouble = from.kind == OperandKind::real64;
  double wide = 0;
  float narrow = 0;
  if (isDouble) {
    memcpy(&wide, &bits, 8);
    narrow = static_cast<float>(wide);
  } else {
    memcpy(&narrow, &bits, 4);
    wide = static_cast<double>(narrow);
  }
  uint64_t out = bits;
  if (bytesOf(type) == 4 && isDouble) {
    out = 0;
    memcpy(&out, &narrow, 4);
  } else if (bytesOf(type) == 8 && !isDouble) {
    memcpy(&out, &wide, 8);
  } else if (bytesOf(type) < 4) {
    wrong("a floating-point constant does not fit '" + nameOf() + "'");
  }
  return out;
}

void Decoder::readInto(uint32_t to, Special which, unsigned component, unsigned bytes, bool isLast) {
  Key key;
  key.op = Op::special;
  Instr& made = emit(key, isLast);
  made.to = to;
  made.special = static_cast<uint8_t>(which);
  made.count = static_cast<uint8_t>(component);
  made.imm = bytes;
  if (which >= Special::reservedBegin && which <= Special::reserved1) program_.usesReservedShared = true;
}

uint32_t Decoder::special(Special which, unsigned component, unsigned bytes) {
  const uint32_t at = temporary(bytes);
  readInto(at, which, component, bytes, false);
  return at;
}

// The address of a named symbol, as a constant of this size.
uint32_t Decoder::addressValue(const Operand& from, unsigned bytes) {
  if (bytes != 4 && bytes != 8) wrong("an address does not fit '" + nameOf() + "'");
  if (from.kind == OperandKind::name) {
    auto found = syntax_.functionNames.find(from.name);
    if (found == syntax_.functionNames.end()) wrong("'" + std::string(from.name) + "' is not declared");
    size_t index = 0;
    for (auto& each : syntax_.functions) {
      if (&each == found->second) break;
      ++index;
    }
    if (!found->second->isDefined)
      refuseFeature(statement_->line,
                    "the address of the function '" + std::string(from.name) + "', which is not defined,");
    return constant(addressOfFunction(index), bytes);
  }
  Variable& variable = *from.variable;
  const uint64_t address = variable.address + static_cast<uint64_t>(from.value);
  if (variable.space == Space::shared && variable.isExtern) {
    const uint32_t base = special(Special::dynamicSharedBase, 0, bytes);
    if (from.value == 0) return base;
    Key key;
    key.op = Op::add;
    key.type = bytes == 4 ? Type::u32 : Type::u64;
    const uint32_t at = temporary(bytes), other = constant(static_cast<uint64_t>(from.value), bytes);
    Instr& made = emit(key, false);
    made.to = at;
    made.a = base;
    made.b = other;
    return at;
  }
  if (variable.isExtern) refuseSyntax(statement_->line, "'" + std::string(variable.name) + "' is not defined");
  if (variable.space == Space::local || variable.space == Space::param) {
    if (variable.reg >= 0) wrong("a parameter in a register has no address");
    Key key;
    key.op = Op::localAddress;
    key.type = bytes == 4 ? Type::u32 : Type::u64;
    const uint32_t at = temporary(bytes);
    Instr& made = emit(key, false);
    made.to = at;
    made.imm = static_cast<int64_t>(address);
    return at;
  }
  return constant(address, bytes);
}

uint32_t Decoder::input(const Operand& from, Type type) {
  const unsigned bytes = laneBytes(type);
  switch (from.kind) {
    case OperandKind::reg:
      if (laneBytes(function_->registers[from.reg]) != bytes)
        wrong("the register '" + std::string(from.name) + "' does not fit '" + nameOf() + "'");
      if (from.value != 0 || from.isNegated || !from.selector.empty())
        wrong("an operand does not fit '" + nameOf() + "'");
      return place(from.reg);
    case OperandKind::integer:
    case OperandKind::real32:
    case OperandKind::real64: return constant(bitsOf(from, type), bytes);
    case OperandKind::variable:
    case OperandKind::name: return addressValue(from, bytes);
    case OperandKind::special: return special(static_cast<Special>(from.reg), static_cast<unsigned>(from.value), bytes);
    default: wrong("an operand does not fit '" + nameOf() + "'");
  }
}

uint32_t Decoder::output(const Operand& to, Type type) {
  if (to.kind == OperandKind::sink) return temporary(laneBytes(type));
  if (to.kind != OperandKind::reg || to.value != 0 || to.isNegated || !to.selector.empty() ||
      laneBytes(function_->registers[to.reg]) != laneBytes(type)) {
    wrong("the result of '" + nameOf() + "' does not fit its register");
  }
  return place(to.reg);
}

uint32_t Decoder::inputPredicate(const Operand& from, bool& isNegated) {
  isNegated = from.isNegated;
  if (from.kind == OperandKind::integer) {
    isNegated = false;
    return constant((from.value != 0) != from.isNegated ? 1 : 0, 0);
  }
  if (from.kind != OperandKind::reg || function_->registers[from.reg] != Type::pred)
    wrong("'" + nameOf() + "' needs a predicate");
  return place(from.reg);
}

uint32_t Decoder::outputPredicate(const Operand& to) {
  if (to.kind == OperandKind::sink) return kNoOperand;
  if (to.kind != OperandKind::reg || function_->registers[to.reg] != Type::pred || to.isNegated)
    wrong("the result of '" + nameOf() + "' is a predicate");
  return place(to.reg);
}

uint32_t Decoder::anyInput(const Operand& from, unsigned least, unsigned& bytes) {
  if (from.kind == OperandKind::reg) {
    bytes = laneBytes(function_->registers[from.reg]);
    if (bytes == 0 || bytes < least)
      wrong("the register '" + std::string(from.name) + "' is too small for '" + nameOf() + "'");
    return place(from.reg);
  }
  bytes = least < 2 ? 2 : least;
  return input(from, bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : bytes == 8 ? Type::b64 : Type::b128);
}

uint32_t Decoder::anyOutput(const Operand& to, unsigned least, unsigned& bytes) {
  if (to.kind == OperandKind::sink) {
    bytes = least < 2 ? 2 : least;
    return temporary(bytes);
  }
  if (to.kind != OperandKind::reg) wrong("the result of '" + nameOf() + "' is no register");
  bytes = laneBytes(function_->registers[to.reg]);
  if (bytes == 0 || bytes < least)
    wrong("the register '" + std::string(to.name) + "' is too small for '" + nameOf() + "'");
  return place(to.reg);
}

Decoder::Address Decoder::address(const Operand& from, Space space) {
  if (from.kind != OperandKind::address || from.parts.size() != 1) wrong("'" + nameOf() + "' needs an address");
  const Operand& base = from.parts[0];
  Address made;
  made.space = space;
  if (base.kind == OperandKind::reg) {
    const unsigned bytes = laneBytes(function_->registers[base.reg]);
    if (bytes != 4 && bytes != 8) wrong("an address does not fit '" + nameOf() + "'");
    made.base = place(base.reg);
    made.offset = base.value;
    made.isWide = bytes == 8;
    return made;
  }
  if (base.kind == OperandKind::integer) {
    made.base = constant(static_cast<uint64_t>(base.value), 8);
    return made;
  }
  if (base.kind != OperandKind::variable) wrong("'" + nameOf() + "' needs an address");
  Variable& variable = *base.variable;
  made.variable = &variable;
  if (variable.reg >= 0) wrong("a parameter in a register has no address");
  if (variable.space == Space::local || variable.space == Space::param) {
    made.base = constant(0, 8);
    made.offset = static_cast<int64_t>(variable.address) + base.value;
    made.isFrameRelative = true;
    made.space = Space::local;
    if (space != Space::local && space != Space::param)
      wrong("'" + std::string(variable.name) + "' lies in another state space");
    return made;
  }
  if (variable.space == Space::kernelParam) {
    made.space = Space::kernelParam;
    made.offset = static_cast<int64_t>(variable.address) + base.value;
    made.base = constant(kParamWindow, 8);
    return made;
  }
  const bool isShared = space == Space::shared || space == Space::cluster;
  if ((variable.space == Space::shared) != isShared)
    wrong("'" + std::string(variable.name) + "' lies in another state space");
  made.base = addressValue(base, 8);
  return made;
}

void Decoder::setAddress(Instr& instr, const Address& from) {
  instr.a = from.base;
  instr.imm = from.offset;
  instr.isWide = from.isWide;
  instr.isFrameRelative = from.isFrameRelative;
  instr.slot = program_.slots++;
}

}  // namespace shoal::ptx
