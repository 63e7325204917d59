// Asynchronous copies, and the barriers in shared memory that signal their completion.
#include "async.h"
#include "decoder.h"

namespace shoal::ptx {

namespace {

constexpr std::pair<std::string_view, AtomicOp> kReductions[] = {
    {".add", AtomicOp::add},        {".inc", AtomicOp::inc},      {".dec", AtomicOp::dec},
    {".min", AtomicOp::minimum},    {".max", AtomicOp::maximum},  {".and", AtomicOp::conjunction},
    {".or", AtomicOp::disjunction}, {".xor", AtomicOp::exclusive}};

constexpr uint64_t kReducible = bits(Type::u32, Type::s32, Type::u64, Type::s64, Type::b32, Type::b64);

}  // namespace

Instr& Decoder::emitHandler(Handler handler) {
  Instr& made = emitFlow(Flow::plain);
  made.run = handler;
  made.slot = program_.slots++;
  return made;
}

// Stores an address in the words of an instruction.
void Decoder::keepAddress(std::vector<uint32_t>& words, size_t at, const Operand& from, Space space) {
  const Address found = address(from, space);
  if (found.offset != static_cast<int32_t>(found.offset) || found.space == Space::kernelParam)
    wrong("an address does not fit '" + nameOf() + "'");
  words[at + addressOperand] = found.base;
  words[at + addressOffset] = static_cast<uint32_t>(found.offset);
  words[at + addressIsWide] = found.isWide ? 1 : 0;
  words[at + addressIsShared] = space == Space::shared || space == Space::cluster ? 1 : 0;
  words[at + addressIsFrame] = found.isFrameRelative ? 1 : 0;
}

void Decoder::asyncCopy() {
  const bool isReduction = take(".reduce");
  if (!take(".async")) wrong("unknown instruction '" + nameOf() + "'");
  if (take(".bulk")) return bulkCopy(isReduction);
  if (isReduction) wrong("unknown instruction '" + nameOf() + "'");
  const bool isCommit = take(".commit_group"), isWait = take(".wait_group");
  if (isCommit || isWait || take(".wait_all")) {
    requireOperands(isWait ? 1 : 0, isWait ? 1 : 0);
    finishModifiers();
    return nothing();
  }
  if (take(".mbarrier")) return copyArrives();
  const bool isAll = take(".ca");
  if (!isAll && !take(".cg")) wrong("unknown instruction '" + nameOf() + "'");
  const bool hasPolicy = take(".L2::cache_hint");
  takeScope();
  if (!take(".shared") && !take(".shared::cta")) wrong("'" + nameOf() + "' copies to shared memory");
  if (!take(".global")) wrong("'" + nameOf() + "' copies from global memory");
  const size_t most = hasPolicy ? 5 : 4;
  requireOperands(hasPolicy ? 4 : 3, most);
  finishModifiers();
  if (operand(2).kind != OperandKind::integer) wrong("the size of '" + nameOf() + "' must be a number");
  const int64_t bytes = operand(2).value;
  if (bytes != 16 && (!isAll || (bytes != 4 && bytes != 8))) wrong("'" + nameOf() + "' cannot copy so many bytes");
  std::vector<uint32_t> words(copyWords, kNoneGiven);
  keepAddress(words, copyTo, operand(0), Space::shared);
  keepAddress(words, copyFrom, operand(1), Space::global);
  words[copyBytes] = static_cast<uint32_t>(bytes);
  if (statement_->operands.size() == most) {
    const Operand& fourth = operand(3);
    if (fourth.kind == OperandKind::reg && function_->registers[fourth.reg] == Type::pred) {
      bool isNegated = false;
      words[copyIgnored] = inputPredicate(fourth, isNegated);
      words[copyIsIgnoredNegated] = isNegated ? 1 : 0;
    } else {
      words[copySourceBytes] = input(fourth, Type::u32);
    }
  }
  const uint32_t start = keep(words);
  emitHandler(copySmall).target = start;
}

// cp.async.mbarrier.arrive: earlier copies have completed already. With .noinc it is a plain arrival. Without, the
// arrival cancels its own increment, so nothing happens.
void Decoder::copyArrives() {
  if (!take(".arrive")) wrong("unknown instruction '" + nameOf() + "'");
  const bool isCounted = !take(".noinc");
  const Space space = takeSpace(Space::generic);
  requireType(takeType(), bit(Type::b64));
  requireOperands(1, 1);
  finishModifiers();
  barrierAt(operand(0), space, isCounted ? BarrierOp::check : BarrierOp::arrive);
}

Instr& Decoder::barrierAt(const Operand& from, Space space, BarrierOp op) {
  if (space != Space::generic && space != Space::shared && space != Space::cluster)
    wrong("'" + nameOf() + "' is for barriers in shared memory");
  const Address at = address(from, space);
  if (at.isFrameRelative || at.space == Space::kernelParam)
    wrong("'" + nameOf() + "' is for barriers in shared memory");
  Instr& made = emitHandler(runBarrier);
  setAddress(made, at);
  made.isShared = space != Space::generic;
  made.asyncOp = static_cast<uint8_t>(op);
  made.to = made.b = kNoneGiven;
  return made;
}

void Decoder::asyncBarrier() {
  if (take(".pending_count")) {
    requireType(takeType(), bit(Type::b64));
    requireOperands(2, 2);
    finishModifiers();
    const uint32_t state = input(operand(1), Type::b64), d = output(operand(0), Type::b32);
    Instr& made = emitHandler(runBarrier);
    made.to = d;
    made.b = state;
    made.asyncOp = static_cast<uint8_t>(BarrierOp::pendingCount);
    return;
  }
  const bool isTry = take(".try_wait"), isTest = isTry || take(".test_wait"), isParity = isTest && take(".parity");
  const bool isDrop = take(".arrive_drop"), isArrive = isDrop || take(".arrive");
  const bool isNoComplete = isArrive && take(".noComplete"), isExpect = take(".expect_tx"),
             isComplete = take(".complete_tx"), isInit = take(".init"), isInvalidate = take(".inval");
  if (isTest + isArrive + (isExpect && !isArrive) + isComplete + isInit + isInvalidate != 1)
    wrong("unknown instruction '" + nameOf() + "'");
  takeScope();
  const Space space = takeSpace(Space::generic);
  requireType(takeType(), bit(Type::b64));
  const size_t first = isTest || isArrive ? 1 : 0;  // index of the address
  if (isTest) requireOperands(3, isTry ? 4 : 3);
  else if (isArrive) requireOperands(isExpect || isNoComplete ? 3 : 2, 3);
  else requireOperands(isInvalidate ? 1 : 2, isInvalidate ? 1 : 2);
  finishModifiers();
  BarrierOp op = isInit         ? BarrierOp::init
                 : isInvalidate ? BarrierOp::invalidate
                 : isComplete   ? BarrierOp::complete
                                : BarrierOp::expect;
  if (isTest) op = isParity ? BarrierOp::testParity : BarrierOp::test;
  else if (isArrive)
    op = isExpect ? (isDrop ? BarrierOp::arriveDropExpect : BarrierOp::arriveExpect)
         : isDrop ? BarrierOp::arriveDrop
                  : BarrierOp::arrive;
  const uint32_t number = statement_->operands.size() > first + 1
                              ? input(operand(first + 1), op == BarrierOp::test ? Type::b64 : Type::u32)
                              : kNoneGiven;
  if (isTry && statement_->operands.size() == 4)
    input(operand(3), Type::u32);  // the time limit is ignored; the instruction waits until the phase ends
  uint32_t d = kNoneGiven;
  if (isTest) d = outputPredicate(operand(0));
  else if (isArrive && operand(0).kind != OperandKind::sink) d = output(operand(0), Type::b64);
  Instr& made = barrierAt(operand(first), space, op);
  made.to = d;
  made.b = number;
  if (isTest) made.flow = isTry ? Flow::phaseWait : Flow::phaseTest;
}

// cp.async.bulk and cp.reduce.async.bulk, except for tensors.
void Decoder::bulkCopy(bool isReduction) {
  const bool isWait = take(".wait_group");
  if (isWait || take(".commit_group")) {
    if (isWait) take(".read");
    requireOperands(isWait ? 1 : 0, isWait ? 1 : 0);
    finishModifiers();
    return nothing();
  }
  for (auto each : statement_->modifiers) {
    if (each == ".tensor") refuse();
  }
  if (take(".prefetch")) return prefetch();
  // The order of the spaces decides which is written.
  std::vector<Space> spaces;
  bool hasPolicy = false;
  for (size_t index = 0; index < isTaken_.size(); ++index) {
    const std::string_view word = statement_->modifiers[index];
    const Space space = word == ".shared::cluster" ? Space::cluster
                        : word == ".shared::cta"   ? Space::shared
                        : word == ".global"        ? Space::global
                                                   : Space::generic;
    if (space != Space::generic) spaces.push_back(space);
    isTaken_[index] = isTaken_[index] || space != Space::generic;
  }
  if (spaces.size() != 2) wrong("'" + nameOf() + "' names not two state spaces");
  const bool isToGlobal = spaces[0] == Space::global;
  if (isToGlobal ? spaces[1] != Space::shared : isReduction && spaces[1] == Space::global)
    wrong("'" + nameOf() + "' cannot copy between its state spaces");
  const bool hasBarrier = take(".mbarrier::complete_tx::bytes");
  if (hasBarrier == isToGlobal || (!hasBarrier && !take(".bulk_group")))
    wrong("'" + nameOf() + "' has not the mechanism of completion of its state spaces");
  const bool isMulticast = take(".multicast::cluster"), isMasked = take(".cp_mask");
  hasPolicy = take(".L2::cache_hint");
  std::vector<uint32_t> words(copyWords, kNoneGiven);
  if (isReduction) {
    for (auto& each : kReductions) {
      if (take(each.first)) words[copyOperation] = static_cast<uint32_t>(each.second);
    }
    if (words[copyOperation] == kNoneGiven) wrong("'" + nameOf() + "' names no operation");
    take(".noftz");
    const Type type = takeType();
    const auto op = static_cast<AtomicOp>(words[copyOperation]);
    const bool isSum = op == AtomicOp::add, isExtreme = op == AtomicOp::minimum || op == AtomicOp::maximum;
    requireType(type, kReducible | (isSum && isToGlobal ? bits(Type::f32, Type::f64) : 0) |
                          ((isSum || isExtreme) && isToGlobal ? bits(Type::f16, Type::bf16) : 0));
    words[copyType] = static_cast<uint32_t>(type);
  }
  const size_t count = size_t{3} + hasBarrier + isMulticast + isMasked + hasPolicy;
  requireOperands(count, count);
  finishModifiers();
  keepAddress(words, copyTo, operand(0), spaces[0]);
  keepAddress(words, copyFrom, operand(1), spaces[1]);
  if (operand(2).kind == OperandKind::integer && operand(2).value % 16 != 0)
    wrong("the size of '" + nameOf() + "' must be a multiple of 16");
  words[copyBytes] = input(operand(2), Type::u32);
  if (hasBarrier) keepAddress(words, copyBarrier, operand(3), Space::cluster);
  if (isMulticast) words[copyBlocks] = input(operand(4), Type::b16);
  if (isMasked) words[copyMask] = input(operand(count - 1), Type::b16);
  const uint32_t start = keep(words);
  emitHandler(copyBulk).target = start;
}

// st.async and red.async, into the shared memory of another block.
void Decoder::storeAsync() {
  const bool isReduction = statement_->opcode == "red";
  takeScope();
  if (!take(".shared::cluster") || !take(".mbarrier::complete_tx::bytes")) refuse();
  std::vector<uint32_t> words(copyWords, kNoneGiven);
  const size_t count = take(".v2") ? 2 : take(".v4") ? 4 : 1;
  if (isReduction) {
    for (auto& each : kReductions) {
      if (take(each.first)) words[copyOperation] = static_cast<uint32_t>(each.second);
    }
    if (words[copyOperation] == kNoneGiven) wrong("'" + nameOf() + "' names no operation");
  }
  const Type type = takeType();
  requireType(type, kReducible | (isReduction ? 0 : bits(Type::f32, Type::f64)));
  words[copyType] = static_cast<uint32_t>(type);
  requireOperands(3, 3);
  finishModifiers();
  if (count * bytesOf(type) > 16) wrong("'" + nameOf() + "' stores too much");
  keepAddress(words, copyTo, operand(0), Space::cluster);
  keepAddress(words, copyBarrier, operand(2), Space::cluster);
  fragmentRegisters(operand(1), bytesOf(type) == 8 ? Type::f64 : Type::b32, count, false, words);
  const uint32_t start = keep(words);
  Instr& made = emitHandler(storeRemote);
  made.target = start;
  made.count = static_cast<uint8_t>(count);
}

}  // namespace shoal::ptx
