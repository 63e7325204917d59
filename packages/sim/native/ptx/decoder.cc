// The core of the decoder: functions, modifiers, labels, and the table of instructions.
#include "decoder.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace shoal::ptx {

int builtinNamed(std::string_view name) {
  constexpr std::string_view names[] = {"vprintf",        "malloc", "free", "__assertfail", "cudaGraphSetConditional",
                                        "cudaGraphLaunch"};
  for (int index = 0; index < static_cast<int>(std::size(names)); ++index) {
    if (names[index] == name) return index;
  }
  return -1;
}

const std::map<std::string_view, Decoder::Entry>& Decoder::entries() {
  using D = Decoder;
  static const std::map<std::string_view, Entry> all = {
      {"add", {&D::arithmetic, Op::add}},
      {"sub", {&D::arithmetic, Op::sub}},
      {"div", {&D::arithmetic, Op::divide}},
      {"rem", {&D::arithmetic, Op::remainder}},
      {"min", {&D::arithmetic, Op::minimum}},
      {"max", {&D::arithmetic, Op::maximum}},
      {"abs", {&D::arithmetic, Op::absolute}},
      {"neg", {&D::arithmetic, Op::negate}},
      {"mul", {&D::multiply, Op::mulLow}},
      {"mul24", {&D::multiply, Op::mul24Low}},
      {"mad", {&D::multiplyAdd, Op::madLow}},
      {"mad24", {&D::multiplyAdd, Op::mad24Low}},
      {"fma", {&D::fusedArithmetic, Op::fused}},
      {"addc", {&D::carry, Op::addCarry}},
      {"subc", {&D::carry, Op::subBorrow}},
      {"madc", {&D::carry, Op::madLowCarry}},
      {"rcp", {&D::unaryFloat, Op::reciprocal}},
      {"sqrt", {&D::unaryFloat, Op::squareRoot}},
      {"rsqrt", {&D::unaryFloat, Op::reciprocalRoot}},
      {"sin", {&D::unaryFloat, Op::sine}},
      {"cos", {&D::unaryFloat, Op::cosine}},
      {"lg2", {&D::unaryFloat, Op::log2}},
      {"ex2", {&D::unaryFloat, Op::exp2}},
      {"tanh", {&D::unaryFloat, Op::tanh}},
      {"popc", {&D::unaryBits, Op::popc}},
      {"clz", {&D::unaryBits, Op::clz}},
      {"brev", {&D::unaryBits, Op::brev}},
      {"bfind", {&D::unaryBits, Op::bfind}},
      {"fns", {&D::findNth, Op::fns}},
      {"and", {&D::logic, Op::bitAnd}},
      {"or", {&D::logic, Op::bitOr}},
      {"xor", {&D::logic, Op::bitXor}},
      {"not", {&D::logic, Op::bitNot}},
      {"cnot", {&D::logic, Op::logicalNot}},
      {"shl", {&D::shift, Op::shiftLeft}},
      {"shr", {&D::shift, Op::shiftRight}},
      {"shf", {&D::funnel, Op::funnelLeft}},
      {"lop3", {&D::lop3, Op::lop3}},
      {"prmt", {&D::permute, Op::permute}},
      {"dp4a", {&D::dot, Op::dp4a}},
      {"dp2a", {&D::dot, Op::dp2aLow}},
      {"bfe", {&D::field, Op::bfe}},
      {"bfi", {&D::field, Op::bfi}},
      {"sad", {&D::sad, Op::sad}},
      {"szext", {&D::extend, Op::szext}},
      {"bmsk", {&D::extend, Op::bmsk}},
      {"setp", {&D::setPredicate, Op::compare}},
      {"set", {&D::setValue, Op::compareToValue}},
      {"selp", {&D::select, Op::select}},
      {"slct", {&D::selectSign, Op::selectBySign}},
      {"testp", {&D::testProperty, Op::testProperty}},
      {"copysign", {&D::copySign, Op::copySign}},
      {"cvt", {&D::convert, Op::convert}},
      {"mov", {&D::move, Op::move}},
      {"ld", {&D::load, Op::load}},
      {"ldu", {&D::load, Op::load}},
      {"st", {&D::store, Op::store}},
      {"atom", {&D::atomic, Op::atomic}},
      {"red", {&D::atomic, Op::reduce}},
      {"prefetch", {&D::prefetch, Op::nothing}},
      {"prefetchu", {&D::prefetch, Op::nothing}},
      {"applypriority", {&D::prefetch, Op::nothing}},
      {"discard", {&D::prefetch, Op::nothing}},
      {"createpolicy", {&D::createPolicy, Op::nothing}},
      {"cvta", {&D::convertAddress, Op::toSpace}},
      {"isspacep", {&D::isSpace, Op::isSpace}},
      {"mapa", {&D::mapRank, Op::mapRank}},
      {"getctarank", {&D::getRank, Op::rankOf}},
      {"shfl", {&D::shuffle, Op::shuffle}},
      {"vote", {&D::vote, Op::vote}},
      {"match", {&D::match, Op::match}},
      {"redux", {&D::redux, Op::redux}},
      {"activemask", {&D::activeMask, Op::activeMask}},
      {"elect", {&D::elect, Op::elect}},
      {"bra", {&D::branch, Op::nothing}},
      {"brx", {&D::branchIndexed, Op::nothing}},
      {"call", {&D::call, Op::nothing}},
      {"ret", {&D::leave, Op::nothing}},
      {"exit", {&D::leave, Op::nothing}},
      {"bar", {&D::barrier, Op::nothing}},
      {"barrier", {&D::barrier, Op::nothing}},
      {"membar", {&D::fence, Op::fence}},
      {"fence", {&D::fence, Op::fence}},
      {"griddepcontrol", {&D::nothing, Op::nothing}},
      {"pmevent", {&D::nothing, Op::nothing}},
      {"setmaxnreg", {&D::nothing, Op::nothing}},
      {"trap", {&D::trap, Op::trap}},
      {"brkpt", {&D::trap, Op::trap}},
      {"nanosleep", {&D::nanosleep, Op::nanosleep}},
      {"mma", {&D::matrix, Op::mma}},
      {"wmma", {&D::matrix, Op::mma}},
      {"ldmatrix", {&D::loadMatrix, Op::loadMatrix}},
      {"stmatrix", {&D::loadMatrix, Op::storeMatrix}},
      {"movmatrix", {&D::moveMatrix, Op::moveMatrix}},
      {"cp", {&D::asyncCopy, Op::nothing}},
      {"mbarrier", {&D::asyncBarrier, Op::nothing}},
      {"vadd", {&D::video, Op::nothing}},
      {"vadd2", {&D::video, Op::nothing}},
      {"vadd4", {&D::video, Op::nothing}},
      {"vsub", {&D::video, Op::nothing}},
      {"vsub2", {&D::video, Op::nothing}},
      {"vsub4", {&D::video, Op::nothing}},
      {"vabsdiff", {&D::video, Op::nothing}},
      {"vabsdiff2", {&D::video, Op::nothing}},
      {"vabsdiff4", {&D::video, Op::nothing}},
      {"vmin", {&D::video, Op::nothing}},
      {"vmin2", {&D::video, Op::nothing}},
      {"vmin4", {&D::video, Op::nothing}},
      {"vmax", {&D::video, Op::nothing}},
      {"vmax2", {&D::video, Op::nothing}},
      {"vmax4", {&D::video, Op::nothing}},
      {"vavrg2", {&D::video, Op::nothing}},
      {"vavrg4", {&D::video, Op::nothing}},
      {"vshl", {&D::video, Op::nothing}},
      {"vshr", {&D::video, Op::nothing}},
      {"vmad", {&D::video, Op::nothing}},
      {"vset", {&D::video, Op::nothing}},
      {"vset2", {&D::video, Op::nothing}},
      {"vset4", {&D::video, Op::nothing}},
      {"tex", {&D::texture, Op::nothing}},
      {"tld4", {&D::texture, Op::nothing}},
      {"txq", {&D::askTexture, Op::nothing}},
      {"suq", {&D::askTexture, Op::nothing}},
      {"suld", {&D::surface, Op::nothing}},
      {"sust", {&D::surface, Op::nothing}},
      {"sured", {&D::surface, Op::nothing}},
  };
  return all;
}

void Decoder::run() {
  size_t index = 0;
  for (auto& each : syntax_.functions) {
    if (each.isDefined) function(each, program_.functions[index]);
    ++index;
  }
  // Constant vectors have the alignment of registers.
  program_.constantBytes.resize(program_.constantBytes.size() + 64);
  auto start = reinterpret_cast<uintptr_t>(program_.constantBytes.data());
  const uintptr_t shift = ((start + 63) & ~uintptr_t{63}) - start;
  memmove(program_.constantBytes.data() + shift, program_.constantBytes.data(), program_.constantBytes.size() - 64);
  program_.constants = program_.constantBytes.data() + shift;
}

void Decoder::function(Function& from, CodeOf& to) {
  function_ = &from;
  code_ = &to;
  frameBytes_ = 0;
  carryFlag_ = kNoOperand;
  places_.assign(from.registers.size(), kNoOperand);
  patches_.clear();
  tablePatches_.clear();
  to.entry = static_cast<uint32_t>(program_.code.size());
  for (auto* list : {&from.parameters, &from.results}) {
    auto& passed = list == &from.parameters ? to.parameters : to.results;
    size_t index = 0;
    for (Variable* each : *list) {
      if (each->reg >= 0) passed[index].at = place(static_cast<uint32_t>(each->reg));
      ++index;
    }
  }
  std::vector<uint32_t> starts;
  starts.reserve(from.statements.size() + 1);
  for (const Statement& each : from.statements) {
    starts.push_back(static_cast<uint32_t>(program_.code.size()));
    statement(each);
  }
  starts.push_back(static_cast<uint32_t>(program_.code.size()));
  // A function also returns at its end.
  Instr end;
  end.flow = from.isKernel ? Flow::exit : Flow::ret;
  end.line = from.statements.empty() ? from.line : from.statements.back().line;
  program_.code.push_back(end);
  auto find = [&](std::string_view label, unsigned line) {
    auto found = from.labels.find(label);
    if (found == from.labels.end()) refuseSyntax(line, "there is no label '" + std::string(label) + "'");
    return starts[found->second];
  };
  for (const Patch& each : patches_) program_.code[each.instr].target = find(each.label, each.line);
  for (const TablePatch& each : tablePatches_) {
    auto& table = program_.tables[each.table];
    for (auto label : each.labels) table.push_back(find(label, each.line));
  }
  to.registerBytes = (frameBytes_ + 63) & ~63u;
}

void Decoder::statement(const Statement& from) {
  statement_ = &from;
  isTaken_.assign(from.modifiers.size(), false);
  order_ = 0;
  const auto& table = entries();
  const auto found = table.find(from.opcode);
  if (found == table.end()) return unsupported();
  (this->*found->second.method)();
}

void Decoder::unsupported() {
  constexpr std::string_view known[] = {"wgmma",        "tcgen05",   "istypep",
                                        "multimem",     "tensormap", "stacksave",
                                        "stackrestore", "alloca",    "clusterlaunchcontrol"};
  for (auto each : known) {
    if (each == statement_->opcode) refuse();
  }
  wrong("unknown instruction '" + nameOf() + "'");
}

std::string Decoder::nameOf() const {
  std::string name(statement_->opcode);
  for (auto each : statement_->modifiers) name += each;
  return name;
}

void Decoder::refuse() const { refuseFeature(statement_->line, "the instruction '" + nameOf() + "'"); }
void Decoder::wrong(const std::string& why) const {
  const std::string name = nameOf();
  refuseSyntax(statement_->line,
               why.find(name) == std::string::npos ? why + " in the instruction '" + name + "'" : why);
}

bool Decoder::take(std::string_view modifier) {
  for (size_t index = 0; index < isTaken_.size(); ++index) {
    if (!isTaken_[index] && statement_->modifiers[index] == modifier) {
      isTaken_[index] = true;
      return true;
    }
  }
  return false;
}

Type Decoder::takeType() {
  for (size_t index = 0; index < isTaken_.size(); ++index) {
    if (isTaken_[index]) continue;
    const Type type = typeNamed(statement_->modifiers[index]);
    if (type == Type::none) continue;
    isTaken_[index] = true;
    return type;
  }
  return Type::none;
}

Rounding Decoder::takeRounding() {
  constexpr std::pair<std::string_view, Rounding> names[] = {
      {".rn", Rounding::rn},   {".rz", Rounding::rz},   {".rm", Rounding::rm},
      {".rp", Rounding::rp},   {".rna", Rounding::rna}, {".rni", Rounding::rni},
      {".rzi", Rounding::rzi}, {".rmi", Rounding::rmi}, {".rpi", Rounding::rpi}};
  for (auto& each : names) {
    if (take(each.first)) return each.second;
  }
  return Rounding::none;
}

// Scopes and orders make no difference here, because every access reaches memory at once.
void Decoder::takeScope() {
  for (std::string_view each : {".volatile", ".weak",    ".relaxed", ".acquire", ".release", ".acq_rel", ".sc", ".mmio",
                                ".cta",      ".cluster", ".gpu",     ".sys",     ".gl",      ".ca",      ".cg", ".cs",
                                ".lu",       ".cv",      ".wb",      ".wt",      ".nc",      ".unified"}) {
    if (!take(each) || each[1] == 'w' || each.size() < 4) continue;
    constexpr std::pair<std::string_view, uint8_t> orders[] = {{".volatile", kStrong},
                                                               {".relaxed", kStrong},
                                                               {".mmio", kStrong},
                                                               {".acquire", kStrong | kAcquire},
                                                               {".release", kStrong | kRelease},
                                                               {".acq_rel", kStrong | kAcquire | kRelease}};
    for (auto& order : orders) order_ |= order.first == each ? order.second : 0;
  }
  for (size_t index = 0; index < isTaken_.size(); ++index) {
    const std::string_view word = statement_->modifiers[index];
    if (word.substr(0, 5) == ".L1::" || word.substr(0, 5) == ".L2::" || word.substr(0, 8) == ".level::")
      isTaken_[index] = true;
  }
}

bool Decoder::hasPolicy() const {
  const auto& words = statement_->modifiers;
  return std::find(words.begin(), words.end(), ".L2::cache_hint") != words.end();
}

Space Decoder::takeSpace(Space otherwise) {
  if (take(".global")) return Space::global;
  if (take(".shared") || take(".shared::cta")) return Space::shared;
  if (take(".shared::cluster")) return Space::cluster;
  if (take(".local")) return Space::local;
  if (take(".const")) return Space::constant;
  if (take(".param") || take(".param::entry") || take(".param::func")) return Space::param;
  return otherwise;
}

void Decoder::finishModifiers() {
  for (size_t index = 0; index < isTaken_.size(); ++index) {
    if (!isTaken_[index])
      refuseFeature(statement_->line,
                    "'" + std::string(statement_->modifiers[index]) + "' in the instruction '" + nameOf() + "'");
  }
}

void Decoder::requireOperands(size_t least, size_t most) const {
  const size_t count = statement_->operands.size();
  if (count < least || count > most) wrong("'" + nameOf() + "' has " + std::to_string(count) + " operands");
}

void Decoder::requireType(Type type, uint64_t allowed) const {
  if (type == Type::none) wrong("'" + nameOf() + "' names no type");
  if ((allowed & bit(type)) == 0) wrong("'" + nameOf() + "' is no instruction for its type");
}

Instr& Decoder::emit(const Key& key, bool isLast) {
  const Handler handler = findHandler(key);
  if (handler == nullptr) refuse();
  Instr& made = emitFlow(Flow::plain);
  made.run = handler;
  if (!isLast) {
    made.guard = 0;
    made.isGuardNegated = false;
  }
  return made;
}

Instr& Decoder::emitFlow(Flow flow) {
  Instr made;
  made.flow = flow;
  made.line = statement_->line;
  made.order = order_;
  if (statement_->guard >= 0) {
    made.guard = 1 + place(static_cast<uint32_t>(statement_->guard));
    made.isGuardNegated = statement_->isGuardNegated;
  }
  program_.code.push_back(made);
  if (isChecking()) {
    program_.sources.resize(program_.code.size());
    program_.sources.back() = {statement_->sourceFile, statement_->sourceLine};
  }
  return program_.code.back();
}

uint32_t Decoder::keep(const std::vector<uint32_t>& operands) {
  const auto start = static_cast<uint32_t>(program_.operands.size());
  program_.operands.insert(program_.operands.end(), operands.begin(), operands.end());
  return start;
}

uint32_t Decoder::packKey(const Key& key) {
  return keep({static_cast<uint32_t>(key.type), static_cast<uint32_t>(key.from), static_cast<uint32_t>(key.rounding),
               key.ftz ? 1u : 0u, key.saturate ? 1u : 0u, key.isRelu ? 1u : 0u});
}

}  // namespace shoal::ptx
