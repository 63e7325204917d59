// Branches, calls, barriers, and warp-wide operations.
#include "decoder.h"

namespace shoal::ptx {

void Decoder::branch() {
  take(".uni");
  requireOperands(1, 1);
  finishModifiers();
  if (operand(0).kind != OperandKind::name) wrong("'bra' needs a label");
  emitFlow(Flow::branch);
  patches_.push_back({program_.code.size() - 1, operand(0).name, statement_->line});
}

void Decoder::branchIndexed() {
  if (!take(".idx")) wrong("unknown instruction '" + nameOf() + "'");
  take(".uni");
  requireOperands(2, 2);
  finishModifiers();
  auto found = function_->targets.find(operand(1).name);
  if (operand(1).kind != OperandKind::name || found == function_->targets.end())
    wrong("'brx.idx' needs a list of labels");
  const uint32_t index = input(operand(0), Type::u32);
  tablePatches_.push_back({program_.tables.size(), found->second, statement_->line});
  program_.tables.emplace_back();
  Instr& made = emitFlow(Flow::branchIndexed);
  made.to = index;
  made.target = static_cast<uint32_t>(program_.tables.size() - 1);
}

void Decoder::leave() {
  take(".uni");
  requireOperands(0, 0);
  finishModifiers();
  emitFlow(statement_->opcode == "exit" || function_->isKernel ? Flow::exit : Flow::ret);
}

void Decoder::call() {
  take(".uni");
  finishModifiers();
  const auto& operands = statement_->operands;
  size_t at = 0;
  CallSite site;
  auto passed = [&](const Operand& from, bool isResult) {
    Passed made;
    if (from.kind == OperandKind::variable &&
        (from.variable->space == Space::param || from.variable->space == Space::local) && from.variable->reg < 0) {
      made.at = static_cast<uint32_t>(from.variable->address);
      made.bytes = static_cast<uint32_t>(from.variable->bytes);
    } else if (from.kind == OperandKind::reg) {
      made.isRegister = true;
      made.at = place(from.reg);
      made.bytes = bytesOf(function_->registers[from.reg]);
      if (made.bytes == 0) wrong("a predicate cannot be passed");
    } else if (!isResult && (from.kind == OperandKind::integer || from.kind == OperandKind::real32 ||
                             from.kind == OperandKind::real64)) {
      made.isRegister = true;
      made.at = constant(static_cast<uint64_t>(from.value), 8);
      made.bytes = 8;
    } else {
      wrong("an argument of a call does not fit");
    }
    return made;
  };
  if (operands.size() > 1 && operands[0].kind == OperandKind::list) {
    for (const Operand& each : operands[0].parts) site.results.push_back(passed(each, true));
    at = 1;
  }
  if (at >= operands.size()) wrong("a call names no function");
  const Operand& callee = operands[at++];
  if (at < operands.size() && operands[at].kind == OperandKind::list) {
    for (const Operand& each : operands[at].parts) site.arguments.push_back(passed(each, false));
    ++at;
  }
  if (callee.kind == OperandKind::reg) {
    site.address = input(callee, Type::u64);
  } else if (callee.kind == OperandKind::name) {
    auto found = syntax_.functionNames.find(callee.name);
    if (found == syntax_.functionNames.end()) wrong("'" + std::string(callee.name) + "' is not declared");
    site.builtin = found->second->isDefined ? -1 : builtinNamed(callee.name);
    if (!found->second->isDefined && site.builtin < 0)
      refuseFeature(statement_->line, "the function '" + std::string(callee.name) + "', which is not defined here,");
    if (found->second->isKernel) wrong("a kernel cannot be called");
    int32_t index = 0;
    for (auto& each : syntax_.functions) {
      if (&each == found->second) break;
      ++index;
    }
    site.function = index;
    const CodeOf& code = program_.functions[static_cast<size_t>(index)];
    if (site.arguments.size() != code.parameters.size() || site.results.size() != code.results.size()) {
      wrong("a call of '" + std::string(callee.name) + "' has not its parameters");
    }
    constexpr size_t arguments[] = {2, 1, 1, 5, 2, 2};
    if (site.builtin >= 0 && site.arguments.size() != arguments[site.builtin])
      wrong("a call of '" + std::string(callee.name) + "' has not its parameters");
  } else {
    wrong("a call names no function");
  }
  program_.calls.push_back(std::move(site));
  emitFlow(Flow::call).target = static_cast<uint32_t>(program_.calls.size() - 1);
}

// extra: 0 sync, 1 arrive, 2 popc, 3 and, 4 or. to = result, a = barrier, b = threads or none, c = predicate.
void Decoder::barrier() {
  if (take(".cluster")) return clusterBarrier();
  if (take(".warp")) {
    take(".sync");
    requireOperands(1, 1);
    finishModifiers();
    const uint32_t members = input(operand(0), Type::b32);
    emitFlow(Flow::warpBarrier).b = members;
    return;
  }
  take(".cta");
  order_ = statement_->opcode == "bar" || take(".aligned") ? 1 : 0;
  const bool isArrive = take(".arrive"), isReduction = take(".red");
  if (!isArrive && !isReduction && !take(".sync")) wrong("unknown instruction '" + nameOf() + "'");
  uint8_t kind = isArrive ? 1 : 0;
  uint32_t result = 0, predicate = 0;
  size_t first = 0, last = statement_->operands.size();
  bool isNegated = false;
  if (isReduction) {
    kind = take(".popc") ? 2 : take(".and") ? 3 : take(".or") ? 4 : 0;
    const Type type = takeType();
    if (kind == 0 || type != (kind == 2 ? Type::u32 : Type::pred)) wrong("unknown instruction '" + nameOf() + "'");
    requireOperands(3, 4);
    first = 1;
    --last;
    predicate = inputPredicate(operand(last), isNegated);
    result = output(operand(0), kind == 2 ? Type::u32 : Type::pred);
  }
  if (take(".aligned")) order_ = 1;
  finishModifiers();
  if (last - first < 1 || last - first > 2) wrong("'" + nameOf() + "' has too few operands, or too many");
  const uint32_t number = input(operand(first), Type::u32),
                 threads = last - first == 2 ? input(operand(first + 1), Type::u32) : kNoOperand;
  if (isArrive && threads == kNoOperand) wrong("'" + nameOf() + "' names no number of threads");
  Instr& made = emitFlow(Flow::barrier);
  made.barrierKind = kind;
  made.to = result;
  made.a = number;
  made.b = threads;
  made.c = predicate;
  made.isPredicateNegated = isNegated;
}

void Decoder::clusterBarrier() {
  const bool isArrive = take(".arrive");
  if (!isArrive && !take(".wait")) wrong("unknown instruction '" + nameOf() + "'");
  take(".release");
  take(".relaxed");
  take(".acquire");
  take(".aligned");
  requireOperands(0, 0);
  finishModifiers();
  emitFlow(isArrive ? Flow::clusterArrive : Flow::clusterWait);
}

void Decoder::fence() {
  for (size_t index = 0; index < isTaken_.size(); ++index) isTaken_[index] = true;
  Key key;
  key.op = Op::fence;
  emit(key);
}

void Decoder::nothing() {
  for (size_t index = 0; index < isTaken_.size(); ++index) isTaken_[index] = true;
  Key key;
  key.op = Op::nothing;
  emit(key);
}

void Decoder::trap() {
  requireOperands(0, 0);
  Key key;
  key.op = Op::trap;
  emit(key);
}

void Decoder::nanosleep() {
  takeType();
  requireOperands(1, 1);
  finishModifiers();
  const uint32_t time = input(operand(0), Type::u32);
  emitFlow(Flow::yield).to = time;
}

void Decoder::shuffle() {
  Key key;
  key.op = Op::shuffle;
  const bool isSync = take(".sync");
  if (take(".up")) key.extra = static_cast<uint8_t>(ShuffleMode::up);
  else if (take(".down")) key.extra = static_cast<uint8_t>(ShuffleMode::down);
  else if (take(".bfly")) key.extra = static_cast<uint8_t>(ShuffleMode::butterfly);
  else if (take(".idx")) key.extra = static_cast<uint8_t>(ShuffleMode::index);
  else wrong("'" + nameOf() + "' names no kind");
  key.type = takeType();
  requireType(key.type, bits(Type::b32, Type::u32, Type::s32, Type::f32));
  requireOperands(isSync ? 5 : 4, isSync ? 5 : 4);
  finishModifiers();
  const bool isPair = operand(0).kind == OperandKind::pair;
  const Operand& to = isPair ? operand(0).parts[0] : operand(0);
  const uint32_t a = input(operand(1), Type::b32), b = input(operand(2), Type::b32), c = input(operand(3), Type::b32);
  const uint32_t members = isSync ? input(operand(4), Type::b32) : kNoOperand;
  const uint32_t d = to.kind == OperandKind::sink ? kNoOperand : output(to, Type::b32),
                 p = isPair ? outputPredicate(operand(0).parts[1]) : kNoOperand;
  Instr& made = emit(key);
  if (isSync) made.flow = Flow::warpSync;
  made.to = d;
  made.a = a;
  made.b = b;
  made.c = c;
  made.d = p;
  made.members = members;
}

void Decoder::vote() {
  Key key;
  key.op = Op::vote;
  const bool isSync = take(".sync");
  if (take(".all")) key.extra = static_cast<uint8_t>(VoteMode::all);
  else if (take(".any")) key.extra = static_cast<uint8_t>(VoteMode::any);
  else if (take(".uni")) key.extra = static_cast<uint8_t>(VoteMode::uniform);
  else if (take(".ballot")) key.extra = static_cast<uint8_t>(VoteMode::ballot);
  else wrong("'" + nameOf() + "' names no kind");
  const bool isBallot = key.extra == static_cast<uint8_t>(VoteMode::ballot);
  requireType(takeType(), bit(isBallot ? Type::b32 : Type::pred));
  requireOperands(isSync ? 3 : 2, isSync ? 3 : 2);
  finishModifiers();
  bool isNegated = false;
  const uint32_t p = inputPredicate(operand(1), isNegated),
                 members = isSync ? input(operand(2), Type::b32) : kNoOperand;
  const uint32_t d = output(operand(0), isBallot ? Type::b32 : Type::pred);
  Instr& made = emit(key);
  if (isSync) made.flow = Flow::warpSync;
  made.to = d;
  made.a = p;
  made.b = members;
  made.members = members;
  made.negated = isNegated ? 1 : 0;
}

void Decoder::match() {
  Key key;
  key.op = Op::match;
  key.extra = take(".all") ? 1 : 0;
  if (key.extra == 0 && !take(".any")) wrong("'" + nameOf() + "' names no kind");
  if (!take(".sync")) wrong("unknown instruction '" + nameOf() + "'");
  key.type = takeType();
  requireType(key.type, bits(Type::b32, Type::b64));
  requireOperands(3, 3);
  finishModifiers();
  const bool isPair = operand(0).kind == OperandKind::pair;
  const uint32_t a = input(operand(1), key.type), members = input(operand(2), Type::b32);
  const uint32_t d = output(isPair ? operand(0).parts[0] : operand(0), Type::b32),
                 p = isPair ? outputPredicate(operand(0).parts[1]) : kNoOperand;
  Instr& made = emit(key);
  made.flow = Flow::warpSync;
  made.to = d;
  made.a = a;
  made.b = members;
  made.c = p;
  made.members = members;
}

void Decoder::redux() {
  Key key;
  key.op = Op::redux;
  if (!take(".sync")) wrong("unknown instruction '" + nameOf() + "'");
  constexpr std::pair<std::string_view, AtomicOp> names[] = {
      {".add", AtomicOp::add},         {".min", AtomicOp::minimum},    {".max", AtomicOp::maximum},
      {".and", AtomicOp::conjunction}, {".or", AtomicOp::disjunction}, {".xor", AtomicOp::exclusive}};
  int operation = -1;
  for (auto& each : names) {
    if (take(each.first)) operation = static_cast<int>(each.second);
  }
  if (operation < 0) wrong("'" + nameOf() + "' names no operation");
  key.extra = static_cast<uint8_t>(operation);
  const uint32_t ofFloats = (take(".abs") ? 1u : 0u) | (take(".NaN") ? 2u : 0u);
  key.type = takeType();
  const bool isExtreme =
      operation == static_cast<int>(AtomicOp::minimum) || operation == static_cast<int>(AtomicOp::maximum);
  requireType(key.type, isExtreme                                      ? bits(Type::u32, Type::s32, Type::f32)
                        : operation == static_cast<int>(AtomicOp::add) ? bits(Type::u32, Type::s32)
                                                                       : bit(Type::b32));
  if (ofFloats != 0 && key.type != Type::f32) wrong("'" + nameOf() + "' has a modifier its type has not");
  requireOperands(3, 3);
  finishModifiers();
  const uint32_t a = input(operand(1), Type::b32), members = input(operand(2), Type::b32),
                 d = output(operand(0), Type::b32);
  Instr& made = emit(key);
  made.flow = Flow::warpSync;
  made.to = d;
  made.a = a;
  made.b = members;
  made.c = ofFloats;
  made.members = members;
}

void Decoder::activeMask() {
  Key key;
  key.op = Op::activeMask;
  requireType(takeType(), bit(Type::b32));
  requireOperands(1, 1);
  finishModifiers();
  const uint32_t d = output(operand(0), Type::b32);
  emit(key).to = d;
}

void Decoder::elect() {
  Key key;
  key.op = Op::elect;
  if (!take(".sync")) wrong("unknown instruction '" + nameOf() + "'");
  requireOperands(2, 2);
  finishModifiers();
  const bool isPair = operand(0).kind == OperandKind::pair;
  if (!isPair) wrong("'elect' gives a lane and a predicate");
  const Operand& to = operand(0).parts[0];
  const uint32_t members = input(operand(1), Type::b32),
                 d = to.kind == OperandKind::sink ? kNoOperand : output(to, Type::b32);
  const uint32_t p = output(operand(0).parts[1], Type::pred);
  Instr& made = emit(key);
  made.flow = Flow::warpSync;
  made.to = d;
  made.a = members;
  made.b = p;
  made.members = members;
}

}  // namespace shoal::ptx
