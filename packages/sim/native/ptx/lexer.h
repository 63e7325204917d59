// Splits PTX into tokens.
#pragma once

#include <cstdint>
#include <string_view>

namespace shoal::ptx {

enum class TokenKind : uint8_t {
  end,
  name /* add, %r1, $L1 */,
  dotted /* .u32, .shared::cta */,
  integer,
  real32,
  real64,
  string,
  punctuation,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  uint64_t bits = 0;        // the value of a number: an integer, or the bits of a float
  bool isUnsigned = false;  // an integer with the suffix U
  unsigned line = 1;
  bool is(std::string_view word) const { return text == word && kind != TokenKind::string; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }
  const Token& peek() const { return token_; }
  Token next() {
    Token token = token_;
    advance();
    return token;
  }

 private:
  void advance();
  void skipBlanks();
  void number();
  char at(size_t index) const { return index < text_.size() ? text_[index] : '\0'; }

  std::string_view text_;
  size_t position_ = 0;
  unsigned line_ = 1;
  Token token_;
};

}  // namespace shoal::ptx
