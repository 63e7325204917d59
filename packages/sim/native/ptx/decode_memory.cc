// Loads, stores, atomic operations, and conversions of addresses between state spaces.
#include "decoder.h"

namespace shoal::ptx {

namespace {

constexpr uint64_t kLoaded =
    bits(Type::u8, Type::u16, Type::u32, Type::u64, Type::s8, Type::s16, Type::s32, Type::s64, Type::b8, Type::b16,
         Type::b32, Type::b64, Type::b128, Type::f16, Type::f16x2, Type::bf16, Type::bf16x2, Type::f32, Type::f64);

// A vector with one element counts as the element.
const Operand& elementOf(const Operand& from) {
  return from.kind == OperandKind::vector && from.parts.size() == 1 ? from.parts[0] : from;
}

}  // namespace

void Decoder::load() {
  Key key;
  key.op = Op::load;
  takeScope();
  Space space = takeSpace(Space::generic);
  key.count = take(".v2") ? 2 : take(".v4") ? 4 : take(".v8") ? 8 : 1;
  key.type = takeType();
  takeScope();  // ".L2::128B" may follow the type
  requireType(key.type, kLoaded);
  requireOperands(2, hasPolicy() ? 3 : 2);
  finishModifiers();
  if (key.count * bytesOf(key.type) > 32) wrong("'" + nameOf() + "' loads too much");
  Address from = address(operand(1), space);
  if (from.space == Space::param) {  // a parameter in a register
    if (function_->isKernel) from.offset += static_cast<int64_t>(kParamWindow);
    from.space = function_->isKernel ? Space::generic : Space::local;
  }
  const unsigned memoryBytes = bytesOf(key.type);
  std::vector<uint32_t> registers;
  unsigned registerBytes = 0;
  auto take1 = [&](const Operand& to) {
    if (to.kind == OperandKind::sink) {
      registers.push_back(kNoOperand);
      return;
    }
    unsigned bytes = 0;
    registers.push_back(anyOutput(to, memoryBytes, bytes));
    if (registerBytes != 0 && bytes != registerBytes) refuse();
    registerBytes = bytes;
  };
  if (key.count == 1) {
    take1(elementOf(operand(0)));
  } else {
    if (operand(0).kind != OperandKind::vector || operand(0).parts.size() != key.count)
      wrong("'" + nameOf() + "' needs as many registers as it loads");
    for (const Operand& each : operand(0).parts) take1(each);
  }
  if (registerBytes == 0) registerBytes = memoryBytes < 2 ? 2 : memoryBytes;
  if (key.count == 1 && registers[0] == kNoOperand) registers[0] = temporary(registerBytes);
  key.extra = static_cast<uint8_t>(registerBytes);
  if (from.space == Space::kernelParam) {
    uint64_t end = 0;
    for (Variable* each : function_->parameters) end = each->address + each->bytes;
    const auto offset = static_cast<uint64_t>(from.offset);
    if (offset > end || offset + key.count * memoryBytes > end) wrong("'" + nameOf() + "' reads beyond the parameters");
    if (offset % (key.count * memoryBytes) != 0) wrong("'" + nameOf() + "' reads a parameter at an odd place");
    key.op = Op::loadParam;
  }
  key.space = from.space;
  const uint32_t start = key.count > 1 ? keep(registers) : 0;
  Instr& made = emit(key);
  setAddress(made, from);
  made.to = registers[0];
  made.count = key.count;
  made.target = start;
}

void Decoder::store() {
  Key key;
  key.op = Op::store;
  if (take(".bulk")) refuse();
  if (take(".async")) return storeAsync();
  takeScope();
  const Space space = takeSpace(Space::generic);
  key.count = take(".v2") ? 2 : take(".v4") ? 4 : take(".v8") ? 8 : 1;
  key.type = takeType();
  takeScope();
  requireType(key.type, kLoaded);
  requireOperands(2, hasPolicy() ? 3 : 2);
  finishModifiers();
  if (key.count * bytesOf(key.type) > 32) wrong("'" + nameOf() + "' stores too much");
  if (space == Space::constant) wrong("constants cannot be written");
  Address to = address(operand(0), space);
  if (to.space == Space::kernelParam) wrong("the parameters of a kernel cannot be written");
  if (to.space == Space::param) {
    if (function_->isKernel) wrong("the parameters of a kernel cannot be written");
    to.space = Space::local;
  }
  const unsigned memoryBytes = bytesOf(key.type);
  std::vector<uint32_t> registers;
  std::vector<const Operand*> values;
  if (key.count == 1) {
    values.push_back(&elementOf(operand(1)));
  } else {
    if (operand(1).kind != OperandKind::vector || operand(1).parts.size() != key.count)
      wrong("'" + nameOf() + "' needs as many registers as it stores");
    for (const Operand& each : operand(1).parts) values.push_back(&each);
  }
  unsigned registerBytes = 0;
  for (const Operand* each : values) {
    if (each->kind != OperandKind::reg) continue;
    unsigned bytes = 0;
    anyInput(*each, memoryBytes, bytes);
    if (registerBytes != 0 && bytes != registerBytes) refuse();
    registerBytes = bytes;
  }
  if (registerBytes == 0) registerBytes = memoryBytes < 2 ? 2 : memoryBytes;
  for (const Operand* each : values) {
    unsigned bytes = 0;
    if (each->kind == OperandKind::reg) registers.push_back(anyInput(*each, memoryBytes, bytes));
    else if (each->kind == OperandKind::real32 || each->kind == OperandKind::real64 ||
             each->kind == OperandKind::integer)
      registers.push_back(constant(bitsOf(*each, key.type), registerBytes));
    else registers.push_back(anyInput(*each, registerBytes, bytes));
  }
  key.extra = static_cast<uint8_t>(registerBytes);
  key.space = to.space;
  const uint32_t start = key.count > 1 ? keep(registers) : 0;
  Instr& made = emit(key);
  setAddress(made, to);
  made.to = registers[0];
  made.count = key.count;
  made.target = start;
}

void Decoder::atomic() {
  Key key;
  key.op = Op::atomic;
  const bool isReduction = statement_->opcode == "red";
  if (take(".async")) return storeAsync();
  takeScope();
  key.space = takeSpace(Space::generic);
  constexpr std::pair<std::string_view, AtomicOp> names[] = {
      {".add", AtomicOp::add},           {".inc", AtomicOp::inc},       {".dec", AtomicOp::dec},
      {".min", AtomicOp::minimum},       {".max", AtomicOp::maximum},   {".and", AtomicOp::conjunction},
      {".or", AtomicOp::disjunction},    {".xor", AtomicOp::exclusive}, {".exch", AtomicOp::exchange},
      {".cas", AtomicOp::compareAndSwap}};
  int operation = -1;
  for (auto& each : names) {
    if (take(each.first)) operation = static_cast<int>(each.second);
  }
  if (operation < 0) wrong("'" + nameOf() + "' names no operation");
  const auto op = static_cast<AtomicOp>(operation);
  key.extra = static_cast<uint8_t>(operation);
  take(".noftz");
  takeRounding();
  const unsigned parts = take(".v2") ? 2 : take(".v4") ? 4 : take(".v8") ? 8 : 1;
  key.type = takeType();
  takeScope();
  requireType(key.type, bits(Type::b16, Type::b32, Type::b64, Type::u32, Type::u64, Type::s32, Type::s64, Type::f32,
                             Type::f64, Type::f16, Type::f16x2, Type::bf16, Type::bf16x2) |
                            (op >= AtomicOp::exchange ? bit(Type::b128) : 0));
  const size_t first = isReduction ? 0 : 1, count = first + (op == AtomicOp::compareAndSwap ? 3 : 2);
  if (isReduction && (op == AtomicOp::compareAndSwap || op == AtomicOp::exchange))
    wrong("'" + nameOf() + "' is no reduction");
  requireOperands(count, count + (hasPolicy() ? 1 : 0));
  finishModifiers();
  const Address at = address(operand(first), key.space);
  order_ |= kStrong | kAtomic;
  if (key.space == Space::cluster) key.space = Space::shared;
  const bool isWanted = !isReduction && operand(0).kind != OperandKind::sink;
  const Operand &value = operand(first + 1), &result = operand(0);
  if (parts > 1) {
    if (key.space == Space::shared || (op != AtomicOp::add && op != AtomicOp::minimum && op != AtomicOp::maximum))
      wrong("'" + nameOf() + "' is no operation on vectors");
    requireType(key.type, bits(Type::f32, Type::f16, Type::f16x2, Type::bf16, Type::bf16x2));
    if (value.parts.size() != parts || (isWanted && result.parts.size() != parts) || parts * bytesOf(key.type) > 16)
      wrong("an operand does not fit '" + nameOf() + "'");
  }
  uint32_t olds[8] = {};  // for vectors: a result may also be the value of a later part
  for (unsigned part = 0; part < parts; ++part) {
    const Operand &from = parts == 1 ? value : value.parts[part],
                  &to = parts == 1 || !isWanted ? result : result.parts[part];
    const uint32_t given = input(from, key.type),
                   other = op == AtomicOp::compareAndSwap ? input(operand(first + 2), key.type) : 0;
    const bool isKept = isWanted && to.kind != OperandKind::sink;
    const uint32_t d = !isKept ? 0 : parts == 1 ? output(to, key.type) : olds[part] = temporary(bytesOf(key.type));
    Instr& made = key.type == Type::b128 ? emitHandler(swapWide) : emit(key);
    Address place = at;
    place.offset += part * bytesOf(key.type);
    setAddress(made, place);
    made.to = d;
    made.b = given;
    made.c = other;
    made.keepsOld = isKept;
    made.count = op == AtomicOp::compareAndSwap ? 2 : 1;
    if (key.type == Type::b128) made.space = static_cast<uint8_t>(key.space);
  }
  Key move;
  move.op = Op::move;
  move.type = key.type;
  for (unsigned part = 0; part < parts; ++part) {
    if (olds[part] != 0) step(move, {olds[part]}, output(result.parts[part], key.type));
  }
}

// Prefetches have no effect.
void Decoder::prefetch() {
  for (size_t index = 0; index < isTaken_.size(); ++index) isTaken_[index] = true;
  Key key;
  key.op = Op::nothing;
  emit(key);
}

void Decoder::convertAddress() {
  Key key;
  const bool isToSpace = take(".to");
  key.op = isToSpace ? Op::toSpace : Op::fromSpace;
  const Space space = takeSpace(Space::generic);
  const Type type = takeType();
  requireOperands(2, 2);
  finishModifiers();
  if (space == Space::generic) wrong("'" + nameOf() + "' names no state space");
  requireType(type, bits(Type::u64, Type::b64));
  uint64_t window = 0;
  if (space == Space::shared || space == Space::cluster) window = kSharedWindow;
  else if (space == Space::local) window = kLocalWindow;
  else if (space == Space::param) window = function_->isKernel ? kParamWindow : kLocalWindow;
  const uint32_t a = input(operand(1), Type::u64), d = output(operand(0), Type::u64);
  if (window == 0) key.op = Op::move, key.type = Type::u64;
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.imm = static_cast<int64_t>(window);
}

void Decoder::isSpace() {
  Key key;
  key.op = Op::isSpace;
  const Space space = takeSpace(Space::generic);
  if (space == Space::generic) wrong("'" + nameOf() + "' names no state space");
  requireOperands(2, 2);
  finishModifiers();
  const uint32_t a = input(operand(1), Type::u64), d = output(operand(0), Type::pred);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.space = static_cast<uint8_t>(space);
}

void Decoder::mapRank() {
  Key key;
  key.op = Op::mapRank;
  takeSpace(Space::generic);
  key.type = takeType();
  requireType(key.type, bits(Type::u32, Type::u64));
  requireOperands(3, 3);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), b = input(operand(2), Type::u32), d = output(operand(0), key.type);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = b;
}

void Decoder::getRank() {
  Key key;
  key.op = Op::rankOf;
  const Space space = takeSpace(Space::generic);
  key.type = takeType();
  requireType(key.type, bits(Type::u32, Type::u64));
  if (space != Space::generic && space != Space::cluster) wrong("'" + nameOf() + "' is for shared memory");
  requireOperands(2, 2);
  finishModifiers();
  const uint32_t a = input(operand(1), key.type), d = output(operand(0), Type::u32),
                 own = special(Special::clusterCtarank, 0, 4);
  Instr& made = emit(key);
  made.to = d;
  made.a = a;
  made.b = own;
}

}  // namespace shoal::ptx
