#include "lexer.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "problem.h"

namespace shoal::ptx {

namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isHex(char c) { return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }
bool isWord(char c) { return isLetter(c) || isDigit(c); }
unsigned hexValue(char c) { return static_cast<unsigned>(isDigit(c) ? c - '0' : (c | 32) - 'a' + 10); }

}  // namespace

void Lexer::skipBlanks() {
  for (;;) {
    const char c = at(position_);
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++position_;
    } else if (c == '/' && at(position_ + 1) == '/') {
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
    } else if (c == '/' && at(position_ + 1) == '*') {
      const size_t end = text_.find("*/", position_ + 2);
      if (end == std::string_view::npos) refuseSyntax(line_, "a comment does not end");
      for (size_t index = position_; index < end; ++index) line_ += text_[index] == '\n';
      position_ = end + 2;
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skipBlanks();
  token_ = Token();
  token_.line = line_;
  const size_t start = position_;
  const char c = at(position_);
  if (position_ >= text_.size()) return;
  if (isLetter(c) || c == '%') {
    token_.kind = TokenKind::name;
    do ++position_;
    while (isWord(at(position_)));
  } else if (c == '.' && isWord(at(position_ + 1))) {
    token_.kind = TokenKind::dotted;
    ++position_;
    while (isWord(at(position_)) || (at(position_) == ':' && at(position_ + 1) == ':'))
      position_ += at(position_) == ':' ? 2 : 1;
  } else if (isDigit(c)) {
    number();
  } else if (c == '"') {
    const size_t end = text_.find('"', position_ + 1);
    if (end == std::string_view::npos) refuseSyntax(line_, "a string does not end");
    token_.kind = TokenKind::string;
    token_.text = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return;
  } else if (strchr("{}()[]<>,;:@!=+-*/%|&^~?", c) != nullptr) {
    token_.kind = TokenKind::punctuation;
    ++position_;
  } else {
    refuseSyntax(line_, std::string("unexpected character '") + c + "'");
  }
  token_.text = text_.substr(start, position_ - start);
}

void Lexer::number() {
  token_.kind = TokenKind::integer;
  const char marker = at(position_ + 1);
  if (at(position_) == '0' && (marker == 'f' || marker == 'F' || marker == 'd' || marker == 'D')) {
    const unsigned digits = marker == 'f' || marker == 'F' ? 8 : 16;
    token_.kind = digits == 8 ? TokenKind::real32 : TokenKind::real64;
    position_ += 2;
    for (unsigned index = 0; index < digits; ++index, ++position_) {
      if (!isHex(at(position_))) refuseSyntax(line_, "a floating-point constant has too few digits");
      token_.bits = token_.bits << 4 | hexValue(at(position_));
    }
    return;
  }
  unsigned base = 10;
  if (at(position_) == '0' && (marker == 'x' || marker == 'X')) {
    base = 16;
    position_ += 2;
  } else if (at(position_) == '0' && (marker == 'b' || marker == 'B')) {
    base = 2;
    position_ += 2;
  }
  const size_t start = position_;
  while (base == 16 ? isHex(at(position_)) : isDigit(at(position_))) ++position_;
  if (base == 10 &&
      ((at(position_) == '.' && isDigit(at(position_ + 1))) || at(position_) == 'e' || at(position_) == 'E')) {
    while (isDigit(at(position_)) || at(position_) == '.' || at(position_) == 'e' || at(position_) == 'E' ||
           ((at(position_) == '-' || at(position_) == '+') && (at(position_ - 1) | 32) == 'e')) {
      ++position_;
    }
    const double value = strtod(std::string(text_.substr(start, position_ - start)).c_str(), nullptr);
    token_.kind = TokenKind::real64;
    memcpy(&token_.bits, &value, sizeof value);
    return;
  }
  if (base == 10 && text_[start] == '0' && position_ - start > 1) base = 8;
  for (size_t index = start; index < position_; ++index) {
    const unsigned digit = hexValue(text_[index]);
    if (digit >= base) refuseSyntax(line_, "a number has a digit that its base has not");
    token_.bits = token_.bits * base + digit;
  }
  if (at(position_) == 'U') {
    token_.isUnsigned = true;
    ++position_;
  }
}

}  // namespace shoal::ptx
