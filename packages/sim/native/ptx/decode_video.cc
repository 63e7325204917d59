// vadd, vadd2, vadd4 and the other video instructions.
#include "decoder.h"
#include "video.h"

namespace shoal::ptx {

namespace {

struct Named {
  std::string_view name;
  VideoOp op;
};
constexpr Named kNames[] = {
    {"vadd", VideoOp::add},       {"vsub", VideoOp::sub},        {"vabsdiff", VideoOp::difference},
    {"vmin", VideoOp::minimum},   {"vmax", VideoOp::maximum},    {"vavrg", VideoOp::average},
    {"vshl", VideoOp::shiftLeft}, {"vshr", VideoOp::shiftRight}, {"vmad", VideoOp::multiplyAdd},
    {"vset", VideoOp::compare}};

// Parses ".b2" and ".h1": a part of a register.
bool findPart(std::string_view text, uint32_t& at, uint32_t& bits) {
  at = 0;
  bits = 32;
  if (text.empty()) return true;
  if (text.size() != 3 || (text[1] != 'b' && text[1] != 'h')) return false;
  bits = text[1] == 'b' ? 8 : 16;
  at = bits * static_cast<uint32_t>(text[2] - '0');
  return text[2] >= '0' && at < 32;
}

// Parses ".h31" and ".b7531": the selected parts, highest first.
bool findOrder(std::string_view text, unsigned parts, uint32_t& order) {
  if (text.empty()) return true;
  if (text.size() != 2 + parts || text[1] != (parts == 2 ? 'h' : 'b')) return false;
  order = 0;
  for (char c : text.substr(2)) {
    if (c < '0' || c >= static_cast<char>('0' + 2 * parts)) return false;
    order = order << 4 | static_cast<uint32_t>(c - '0');
  }
  return true;
}

// Parses ".h1" and ".b310": the parts to write.
bool findMask(std::string_view text, unsigned parts, uint32_t& mask) {
  if (text.empty()) return true;
  if (text.size() < 3 || text[1] != (parts == 2 ? 'h' : 'b')) return false;
  mask = 0;
  char before = '9';
  for (char c : text.substr(2)) {
    if (c < '0' || c >= static_cast<char>('0' + parts) || c >= before) return false;
    mask |= 1u << (c - '0');
    before = c;
  }
  return true;
}

}  // namespace

void Decoder::video() {
  std::vector<uint32_t> words(videoWords);
  std::string_view name = statement_->opcode;
  unsigned parts = 1;
  if (name.back() == '2' || name.back() == '4') {
    parts = static_cast<unsigned>(name.back() - '0');
    name.remove_suffix(1);
  }
  VideoOp op = VideoOp::add;
  for (auto& each : kNames) {
    if (each.name == name) op = each.op;
  }
  words[videoOp] = static_cast<uint32_t>(op);
  words[videoParts] = parts;
  words[videoSaturates] = take(".sat") ? 1 : 0;
  const bool isCompare = op == VideoOp::compare, isShift = op == VideoOp::shiftLeft || op == VideoOp::shiftRight,
             isMad = op == VideoOp::multiplyAdd;
  if (isCompare && words[videoSaturates] != 0) wrong("'" + nameOf() + "' cannot be saturated");
  if (isShift) {
    words[videoWraps] = take(".wrap") ? 1 : 0;
    if (words[videoWraps] == 0 && !take(".clamp")) wrong("'" + nameOf() + "' is neither .wrap nor .clamp");
  }
  if (isMad) {
    words[videoScale] = take(".shr7") ? 7 : take(".shr15") ? 15 : 0;
    words[videoIsPlusOne] = take(".po") ? 1 : 0;
  }
  if (isCompare) {
    constexpr std::pair<std::string_view, Comparison> names[] = {{".eq", Comparison::eq}, {".ne", Comparison::ne},
                                                                 {".lt", Comparison::lt}, {".le", Comparison::le},
                                                                 {".gt", Comparison::gt}, {".ge", Comparison::ge}};
    bool isNamed = false;
    for (auto& each : names) {
      if (!take(each.first)) continue;
      words[videoComparison] = static_cast<uint32_t>(each.second);
      isNamed = true;
    }
    if (!isNamed) wrong("'" + nameOf() + "' names no comparison");
  }
  VideoSecond second = VideoSecond::none;
  if (!isMad && take(".add")) second = VideoSecond::add;
  else if (!isMad && parts == 1 && take(".min")) second = VideoSecond::minimum;
  else if (!isMad && parts == 1 && take(".max")) second = VideoSecond::maximum;
  if (parts != 1 && second == VideoSecond::add && words[videoSaturates] != 0)
    wrong("'" + nameOf() + "' cannot be saturated");
  const Type d = isCompare ? Type::u32 : takeType(), a = takeType(), b = takeType();
  for (const Type each : {d, a, b}) requireType(each, bits(Type::u32, Type::s32));
  if (isShift && b != Type::u32) wrong("'" + nameOf() + "' shifts by an unsigned number");
  words[videoIsSigned] = isSigned(d) ? 1 : 0;
  words[videoIsSignedA] = isSigned(a) ? 1 : 0;
  words[videoIsSignedB] = isSigned(b) ? 1 : 0;
  requireOperands(3, 4);
  finishModifiers();
  const Operand& to = operand(0);
  bool areFine;
  if (parts == 1) {
    areFine = findPart(to.selector, words[videoAt], words[videoBits]) &&
              findPart(operand(1).selector, words[videoAtA], words[videoBitsA]) &&
              findPart(operand(2).selector, words[videoAtB], words[videoBitsB]);
    if (!to.selector.empty()) {
      areFine = areFine && second == VideoSecond::none && !isMad;
      second = VideoSecond::merge;
    }
  } else {
    words[videoMask] = (1u << parts) - 1;
    words[videoFromA] = parts == 2 ? 0x10 : 0x3210;
    words[videoFromB] = parts == 2 ? 0x32 : 0x7654;
    if (second == VideoSecond::none) second = VideoSecond::merge;
    areFine = findMask(to.selector, parts, words[videoMask]) &&
              findOrder(operand(1).selector, parts, words[videoFromA]) &&
              findOrder(operand(2).selector, parts, words[videoFromB]);
  }
  if (!areFine) wrong("a part of a register does not fit '" + nameOf() + "'");
  words[videoSecond] = static_cast<uint32_t>(second);
  const size_t count = second == VideoSecond::none && !isMad ? 3 : 4;
  requireOperands(count, count);
  bool isNegated[4] = {};
  uint32_t registers[4] = {};
  for (size_t index = 1; index < count; ++index) {
    Operand from = operand(index);
    isNegated[index] = isMad && from.kind == OperandKind::reg && from.isNegated;
    if (isNegated[index]) from.isNegated = false;
    if (index < 3) from.selector = {};
    registers[index] = input(from, Type::b32);
  }
  words[videoIsNegatedProduct] = isNegated[1] != isNegated[2] ? 1 : 0;
  words[videoIsNegatedAddend] = isNegated[3] ? 1 : 0;
  if (words[videoIsNegatedProduct] + words[videoIsNegatedAddend] + words[videoIsPlusOne] > 1)
    wrong("'" + nameOf() + "' negates too much");
  Operand target = to;
  target.selector = {};
  const uint32_t result = output(target, Type::b32), start = keep(words);
  Instr& made = emitHandler(runVideo);
  made.to = result;
  for (size_t index = 1; index < count; ++index) made.operands[index] = registers[index];
  made.target = start;
}

}  // namespace shoal::ptx
