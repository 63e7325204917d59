// All forms of the video instructions, checked against a reference that interprets the instruction's text.
#include <sstream>

#include "ptx_cases.h"

using namespace cases;

namespace {

using Big = __int128;

// The parts of an instruction's text: the words between the dots, and the selectors of its operands.
struct Form {
  std::string op, d, a, b;
  std::vector<std::string> modifiers;
  std::string to, left, right;  // selectors; empty: the whole register
  bool hasThird = false;
  bool isLeftNegated = false, isRightNegated = false, isThirdNegated = false;

  bool has(const char* word) const {
    for (auto& each : modifiers) {
      if (each == word) return true;
    }
    return false;
  }
  std::string text() const {
    std::string out = op;
    if (!d.empty()) out += "." + d;
    out += "." + a + "." + b;
    for (auto& each : modifiers) out += "." + each;
    auto selected = [](const std::string& name, const std::string& selector) {
      return selector.empty() ? name : name + "." + selector;
    };
    out += " " + selected("%d", to) + ", " + (isLeftNegated ? "-" : "") + selected("%a", left) + ", " +
           (isRightNegated ? "-" : "") + selected("%b", right);
    if (hasThird) out += std::string(", ") + (isThirdNegated ? "-" : "") + "%c";
    return out + ";";
  }
};

Big extended(uint64_t bits, unsigned count, bool isSigned) {
  const Big value = static_cast<Big>(bits & ((uint64_t{1} << count) - 1));
  return isSigned && value >= (Big{1} << (count - 1)) ? value - (Big{1} << count) : value;
}
Big limited(Big value, unsigned bits, bool isSigned) {
  const Big low = isSigned ? -(Big{1} << (bits - 1)) : 0,
            high = isSigned ? (Big{1} << (bits - 1)) - 1 : (Big{1} << bits) - 1;
  return std::min(std::max(value, low), high);
}
bool compares(const Form& form, Big x, Big y) {
  if (form.has("eq")) return x == y;
  if (form.has("ne")) return x != y;
  if (form.has("lt")) return x < y;
  if (form.has("le")) return x <= y;
  if (form.has("gt")) return x > y;
  return x >= y;
}
Big computed(const std::string& op, const Form& form, Big x, Big y) {
  if (op == "vadd") return x + y;
  if (op == "vsub") return x - y;
  if (op == "vabsdiff") return x > y ? x - y : y - x;
  if (op == "vmin") return std::min(x, y);
  if (op == "vmax") return std::max(x, y);
  if (op == "vset") return compares(form, x, y) ? 1 : 0;
  if (op == "vavrg") {
    const Big sum = x + y;
    return sum >= 0 ? (sum + 1) / 2 : -((-sum + 1) / 2);
  }
  Big by = form.has("wrap") ? y % 32 : std::min<Big>(y, 32);
  Big result = x;
  for (; by > 0; --by) result = op == "vshl" ? result * 2 : result >= 0 ? result / 2 : -((-result + 1) / 2);
  return result;
}

uint64_t expected(const Form& form, uint64_t a, uint64_t b, uint64_t c) {
  const bool isSigned = form.d == "s32", isLeftSigned = form.a == "s32", isRightSigned = form.b == "s32";
  auto selected = [](uint64_t word, const std::string& selector, bool is) {
    if (selector.empty()) return extended(word, 32, is);
    const unsigned bits = selector[0] == 'b' ? 8 : 16;
    return extended(word >> bits * static_cast<unsigned>(selector[1] - '0'), bits, is);
  };
  const char last = form.op.back();
  if (last != '2' && last != '4') {
    const Big x = selected(a, form.left, isLeftSigned), y = selected(b, form.right, isRightSigned);
    if (form.op == "vmad") {
      const bool isFinalSigned =
          isLeftSigned || isRightSigned || form.isLeftNegated || form.isRightNegated || form.isThirdNegated;
      Big product = x * y, third = extended(c, 32, isFinalSigned);
      if (form.isLeftNegated != form.isRightNegated) product = -product;
      if (form.isThirdNegated) third = -third;
      Big result = product + third + (form.has("po") ? 1 : 0);
      for (int shift = form.has("shr7") ? 7 : form.has("shr15") ? 15 : 0; shift > 0; --shift)
        result = result >= 0 ? result / 2 : -((-result + 1) / 2);
      return static_cast<uint64_t>(form.has("sat") ? limited(result, 32, isFinalSigned) : result);
    }
    Big result = computed(form.op, form, x, y);
    if (form.has("sat")) result = limited(result, form.to.empty() ? 32 : form.to[0] == 'b' ? 8 : 16, isSigned);
    result = extended(static_cast<uint64_t>(result), 33, true);
    const Big third = extended(c, 32, isSigned);
    if (form.has("add")) return static_cast<uint64_t>(result + third);
    if (form.has("min")) return static_cast<uint64_t>(std::min(result, third));
    if (form.has("max")) return static_cast<uint64_t>(std::max(result, third));
    if (form.to.empty()) return static_cast<uint64_t>(result);
    const unsigned bits = form.to[0] == 'b' ? 8 : 16, at = bits * static_cast<unsigned>(form.to[1] - '0');
    const uint64_t field = ((uint64_t{1} << bits) - 1) << at;
    return (c & ~field) | (static_cast<uint64_t>(result) << at & field);
  }
  const unsigned parts = static_cast<unsigned>(last - '0'), bits = 32 / parts;
  const std::string op = form.op.substr(0, form.op.size() - 1);
  const std::string left = form.left.empty() ? (parts == 2 ? "h10" : "b3210") : form.left,
                    right = form.right.empty() ? (parts == 2 ? "h32" : "b7654") : form.right;
  uint64_t result = c;
  for (unsigned part = 0; part < parts; ++part) {
    const char digit = static_cast<char>('0' + part);
    if (!form.to.empty() && form.to.find(digit, 1) == std::string::npos) continue;
    auto source = [&](const std::string& order, bool is) {
      const auto from = static_cast<unsigned>(order[order.size() - 1 - part] - '0');
      return extended((a | b << 32) >> bits * from, bits, is);
    };
    Big value = computed(op, form, source(left, isLeftSigned), source(right, isRightSigned));
    if (form.has("sat")) value = limited(value, bits, isSigned);
    const uint64_t field = ((uint64_t{1} << bits) - 1) << part * bits;
    result = form.has("add") ? result + static_cast<uint64_t>(value)
                             : (result & ~field) | (static_cast<uint64_t>(value) << part * bits & field);
  }
  return result;
}

void push(std::vector<Case>& all, const Form& form) {
  // The compiler of CUDA 13.0 emulates these forms wrongly. It saturates as unsigned, compares as 64-bit, writes the
  // wrong half of the result into the upper half of a register, and multiplies and adds without the sign or the bits
  // above 32.
  const bool isSingle = form.op.back() != '2' && form.op.back() != '4';
  const bool isEmulated =
      isSingle && (form.op == "vmad" || form.has("sat") || form.has("min") || form.has("max") || form.to == "h1");
  all.push_back({form.text(),
                 "b32",
                 "b32",
                 "b32",
                 "b32",
                 [form](uint64_t a, uint64_t b, uint64_t c) { return expected(form, a, b, c); },
                 {},
                 isEmulated});
}

const std::vector<std::string> kSigns = {"u32", "s32"};

}  // namespace

TEST(single_parts) {
  std::vector<Case> all;
  size_t turn = 0;
  const std::vector<std::string> parts = {"", "b0", "b1", "b2", "b3", "h0", "h1"};
  for (const std::string op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr"}) {
    const bool isShift = op[1] == 's' && op[2] == 'h';
    for (auto& d : kSigns) {
      for (auto& a : kSigns) {
        for (auto& b : kSigns) {
          if (isShift && b == "s32") continue;
          for (const bool isSaturated : {false, true}) {
            for (const std::string second : {"", "add", "min", "max", "merge"}) {
              for (const std::string& mode :
                   isShift ? std::vector<std::string>{"clamp", "wrap"} : std::vector<std::string>{""}) {
                Form form{op, d, a, b, {}, "", parts[turn % 7], parts[turn / 7 % 7], !second.empty()};
                if (isSaturated) form.modifiers.push_back("sat");
                if (!mode.empty()) form.modifiers.push_back(mode);
                if (second == "merge") form.to = parts[1 + turn % 6];
                else if (!second.empty()) form.modifiers.push_back(second);
                turn += 5;
                push(all, form);
              }
            }
          }
        }
      }
    }
  }
  for (auto& a : kSigns) {
    for (auto& b : kSigns) {
      for (const std::string comparison : {"eq", "ne", "lt", "le", "gt", "ge"}) {
        for (const std::string second : {"", "add", "min", "max", "merge"}) {
          Form form{"vset", "", a, b, {comparison}, "", parts[turn % 7], parts[turn / 7 % 7], !second.empty()};
          if (second == "merge") form.to = parts[1 + turn % 6];
          else if (!second.empty()) form.modifiers.push_back(second);
          turn += 3;
          push(all, form);
        }
      }
    }
  }
  run(all);
}

TEST(multiplied_parts) {
  std::vector<Case> all;
  const std::vector<std::string> parts = {"", "b0", "h1", "b3", "h0"};
  size_t turn = 0;
  for (auto& a : kSigns) {
    for (auto& b : kSigns) {
      for (const std::string scale : {"", "shr7", "shr15"}) {
        for (const bool isSaturated : {false, true}) {
          for (int sign = 0; sign < 6; ++sign) {
            Form form{"vmad",
                      a == "s32" || b == "s32" || (sign > 0 && sign < 4) ? "s32" : "u32",
                      a,
                      b,
                      {},
                      "",
                      parts[turn % 5],
                      parts[turn / 5 % 5],
                      true};
            form.isLeftNegated = sign == 1;
            form.isRightNegated = sign == 2;
            form.isThirdNegated = sign == 3;
            if (sign == 4) form.modifiers.push_back("po");
            if (isSaturated) form.modifiers.push_back("sat");
            if (!scale.empty()) form.modifiers.push_back(scale);
            ++turn;
            push(all, form);
          }
        }
      }
    }
  }
  run(all);
}

TEST(several_parts) {
  std::vector<Case> all;
  size_t turn = 0;
  for (const std::string count : {"2", "4"}) {
    const std::vector<std::string> masks =
        count == "2" ? std::vector<std::string>{"", "h0", "h1", "h10"}
                     : std::vector<std::string>{"",   "b0",  "b1",  "b10",  "b2",  "b20",  "b21",  "b210",
                                                "b3", "b30", "b31", "b310", "b32", "b320", "b321", "b3210"};
    const std::vector<std::string> orders =
        count == "2" ? std::vector<std::string>{"", "h10", "h32", "h01", "h13", "h22", "h30"}
                     : std::vector<std::string>{"", "b3210", "b7654", "b0123", "b1357", "b0000", "b7162"};
    for (const std::string op : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"}) {
      for (auto& d : kSigns) {
        for (auto& a : kSigns) {
          for (auto& b : kSigns) {
            for (const std::string second : {"", "sat", "add"}) {
              for (int variant = 0; variant < 2; ++variant) {
                Form form{op + count,           d,   a, b, {}, masks[turn % masks.size()], orders[turn % 7],
                          orders[turn / 7 % 7], true};
                if (!second.empty()) form.modifiers.push_back(second);
                turn += 3;
                push(all, form);
              }
            }
          }
        }
      }
    }
    for (auto& a : kSigns) {
      for (auto& b : kSigns) {
        for (const std::string comparison : {"eq", "ne", "lt", "le", "gt", "ge"}) {
          for (const bool isAdded : {false, true}) {
            Form form{"vset" + count,       "",  a, b, {comparison}, masks[turn % masks.size()], orders[turn % 7],
                      orders[turn / 7 % 7], true};
            if (isAdded) form.modifiers.push_back("add");
            turn += 3;
            push(all, form);
          }
        }
      }
    }
  }
  run(all);
}
