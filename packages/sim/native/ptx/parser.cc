// The parser for a module's directives, variables and initial values.
#include "parser.h"

#include <cstring>

#include "problem.h"

namespace shoal::ptx {

namespace {
constexpr uint64_t kMostBytes = uint64_t{1} << 40;
}

void Parser::unexpected(const Token& token) const {
  if (token.kind == TokenKind::end) refuseSyntax(token.line, "the text ends too early");
  const std::string where = instruction_.empty() ? "" : " in the instruction '" + instruction_ + "'";
  refuseSyntax(token.line, "syntax error near '" + std::string(token.text) + "'" + where);
}

Token Parser::expect(std::string_view word) {
  if (!lexer_.peek().is(word)) unexpected(lexer_.peek());
  return lexer_.next();
}

bool Parser::accept(std::string_view word) {
  if (!lexer_.peek().is(word)) return false;
  lexer_.next();
  return true;
}

Token Parser::name() {
  if (lexer_.peek().kind != TokenKind::name) unexpected(lexer_.peek());
  return lexer_.next();
}

uint64_t Parser::integer() {
  if (lexer_.peek().kind != TokenKind::integer) unexpected(lexer_.peek());
  return lexer_.next().bits;
}

// An integer with signs, or a sum of integers.
int64_t Parser::constant() {
  auto term = [&]() -> uint64_t {
    bool isNegative = false, isComplement = false;
    for (;;) {
      if (accept("-")) isNegative = !isNegative;
      else if (accept("~")) isComplement = !isComplement;
      else if (!accept("+")) break;
    }
    uint64_t value = integer();
    if (isComplement) value = ~value;
    return isNegative ? 0 - value : value;
  };
  uint64_t value = term();
  for (;;) {
    if (accept("*")) value *= term();
    else if (lexer_.peek().is("+") || lexer_.peek().is("-")) value += term();
    else return static_cast<int64_t>(value);
  }
}

void Parser::skipStatement() {
  while (!lexer_.peek().is(";")) {
    if (lexer_.peek().kind == TokenKind::end) unexpected(lexer_.peek());
    lexer_.next();
  }
  lexer_.next();
}

void Parser::run() {
  scopes_.emplace_back();
  version();
  while (lexer_.peek().kind != TokenKind::end) {
    const Token token = lexer_.peek();
    if (token.kind != TokenKind::dotted) unexpected(token);
    if (token.is(".target")) target();
    else if (token.is(".address_size")) {
      lexer_.next();
      if (integer() != 64) refuseFeature(token.line, "an address size other than 64");
    } else if (token.is(".file")) {
      lexer_.next();
      sourceFile();
      skipLine(token.line);
    } else if (token.is(".loc")) {
      lexer_.next();
      skipLine(token.line);
    } else if (token.is(".section")) {
      section();
    } else if (token.is(".pragma") || token.is(".alias")) {
      if (token.is(".alias")) refuseFeature(token.line, ".alias");
      skipStatement();
    } else {
      linkage();
    }
  }
}

void Parser::version() {
  expect(".version");
  const Token number = lexer_.next();
  // The lexer reads "9.0" as a float and "9" as an integer.
  unsigned major = 0, minor = 0;
  const std::string text(number.text);
  if (number.kind != TokenKind::real64 || sscanf(text.c_str(), "%u.%u", &major, &minor) != 2) unexpected(number);
  if (major > 99 || minor > 9) unexpected(number);
  syntax_.versionMajor = major;
  syntax_.versionMinor = minor;
}

void Parser::target() {
  lexer_.next();
  do {
    const Token token = name();
    if (token.text.substr(0, 3) != "sm_" && token.text.substr(0, 8) != "compute_") continue;
    unsigned number = 0;
    for (char c : token.text.substr(token.text.find('_') + 1)) {
      if (c < '0' || c > '9') break;
      number = number * 10 + static_cast<unsigned>(c - '0');
    }
    if (number < 50 || number > 999) refuseFeature(token.line, "the target " + std::string(token.text));
    syntax_.target = number;
  } while (accept(","));
}

void Parser::skipLine(unsigned line) {
  while (lexer_.peek().line == line && lexer_.peek().kind != TokenKind::end) lexer_.next();
}

// `.file 1 "name"` is only used for reports, so errors in it are ignored.
void Parser::sourceFile() {
  if (lexer_.peek().kind != TokenKind::integer) return;
  const auto number = static_cast<uint32_t>(lexer_.next().bits);
  if (lexer_.peek().kind == TokenKind::string) syntax_.files[number] = lexer_.peek().text;
}

// `.loc 1 27 5`: the file and line of the following instructions.
void Parser::sourceLine(unsigned line) {
  if (lexer_.peek().kind == TokenKind::integer && lexer_.peek().line == line) {
    sourceFile_ = static_cast<uint32_t>(lexer_.next().bits);
    if (lexer_.peek().kind == TokenKind::integer) sourceLine_ = static_cast<uint32_t>(lexer_.peek().bits);
  }
  skipLine(line);
}

void Parser::section() {
  // Debug information.
  lexer_.next();
  while (!lexer_.peek().is("{")) {
    if (lexer_.peek().kind == TokenKind::end) unexpected(lexer_.peek());
    lexer_.next();
  }
  while (!lexer_.peek().is("}")) {
    if (lexer_.peek().kind == TokenKind::end) unexpected(lexer_.peek());
    lexer_.next();
  }
  lexer_.next();
}

void Parser::linkage() {
  bool isExtern = false;
  for (;;) {
    const Token token = lexer_.next();
    if (token.is(".extern")) isExtern = true;
    else if (token.is(".visible") || token.is(".weak") || token.is(".common")) continue;
    else if (token.is(".entry")) return function(true, isExtern);
    else if (token.is(".func")) return function(false, isExtern);
    else if (token.is(".global") || token.is(".const") || token.is(".shared")) {
      const Space space = token.is(".global") ? Space::global : token.is(".const") ? Space::constant : Space::shared;
      do {
        // A variable that was declared before is already listed.
        const size_t known = syntax_.variableNames.size();
        Variable* made = variable(space, isExtern, false);
        if (syntax_.variableNames.size() != known) syntax_.globals.push_back(made);
      } while (accept(","));
      expect(";");
      return;
    } else {
      unexpected(token);
    }
  }
}

void Parser::attributes(Variable& made) {
  expect("(");
  while (!accept(")")) {
    const Token token = lexer_.next();
    if (token.is(".managed")) made.isManaged = true;
    else if (token.kind == TokenKind::end) unexpected(token);
    else if (token.is(".unified")) refuseFeature(token.line, "the attribute .unified");
  }
}

// Parses a variable after its state space, up to the comma or semicolon.
Variable* Parser::variable(Space space, bool isExtern, bool isFunctionScope) {
  static thread_local Variable previous;  // in "a, b" the second variable has the type of the first
  Variable made;
  made.space = space;
  made.isExtern = isExtern;
  made.isFunctionScope = isFunctionScope;
  uint64_t lanes = 1;
  bool hasType = false;
  while (lexer_.peek().kind == TokenKind::dotted) {
    const Token token = lexer_.next();
    if (token.is(".align")) made.alignment = static_cast<unsigned>(integer());
    else if (token.is(".v2")) lanes = 2;
    else if (token.is(".v4")) lanes = 4;
    else if (token.is(".v8")) lanes = 8;
    else if (token.is(".attribute")) attributes(made);
    else if (token.is(".ptr") || token.is(".global") || token.is(".const") || token.is(".local") || token.is(".shared"))
      continue;
    else if ((made.type = typeNamed(token.text)) != Type::none) hasType = true;
    else unexpected(token);
  }
  if (!hasType) {
    made.type = previous.type;
    made.alignment = previous.alignment;
  }
  if (made.type == Type::texref || made.type == Type::samplerref || made.type == Type::surfref) {
    refuseFeature(lexer_.peek().line, "a texture, sampler or surface reference");
  }
  const uint64_t elementBytes = bytesOf(made.type) * lanes;
  if (elementBytes == 0 || (made.alignment & (made.alignment - 1)) != 0 || made.alignment > 4096)
    unexpected(lexer_.peek());
  if (made.alignment < elementBytes) made.alignment = static_cast<unsigned>(elementBytes);
  previous = made;
  const Token named = name();
  made.name = named.text;
  made.line = named.line;
  if (lexer_.peek().is("<")) refuseFeature(named.line, "a numbered variable");
  dimensions(made, elementBytes);
  syntax_.variables.push_back(std::move(made));
  Variable* kept = &syntax_.variables.back();
  auto& names = isFunctionScope ? scopes_.back().variables : syntax_.variableNames;
  // A declaration may precede the definition.
  auto found = names.find(kept->name);
  if (found != names.end() && !found->second->isExtern && !isExtern) {
    refuseSyntax(kept->line, "'" + std::string(kept->name) + "' is declared twice");
  }
  if (found != names.end() && isExtern) return found->second;
  if (found != names.end()) {
    // Earlier uses point to the declaration, so it becomes the definition.
    Variable* first = found->second;
    *first = *kept;
    kept = first;
  } else {
    names[kept->name] = kept;
  }
  if (accept("=")) initialize(*kept);
  return kept;
}

void Parser::dimensions(Variable& made, uint64_t elementBytes) {
  uint64_t bytes = elementBytes;
  bool isArray = false;
  while (accept("[")) {
    if (accept("]")) {
      if (isArray) unexpected(lexer_.peek());
      made.isUnsized = true;
    } else {
      const int64_t count = constant();
      if (count < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(count), &bytes) || bytes > kMostBytes) {
        refuseSyntax(made.line, "'" + std::string(made.name) + "' is too large");
      }
      expect("]");
    }
    isArray = true;
  }
  made.bytes = made.isUnsized ? 0 : bytes;
}

void Parser::initialize(Variable& made) {
  if (made.space != Space::global && made.space != Space::constant) unexpected(lexer_.peek());
  const uint64_t element = bytesOf(made.type);
  uint64_t offset = 0;
  if (lexer_.peek().is("{")) initialElements(made, offset, 0);
  else initialElement(made, offset);
  if (made.isUnsized) {
    made.bytes = (offset + element - 1) / element * element;
    made.isUnsized = false;
  }
  if (offset > made.bytes) refuseSyntax(made.line, "'" + std::string(made.name) + "' has too many initial values");
}

void Parser::initialElements(Variable& made, uint64_t& offset, unsigned depth) {
  if (depth > 16) refuseSyntax(lexer_.peek().line, "initial values are nested too deeply");
  expect("{");
  while (!accept("}")) {
    if (lexer_.peek().is("{")) initialElements(made, offset, depth + 1);
    else initialElement(made, offset);
    if (!lexer_.peek().is("}")) expect(",");
  }
}

void Parser::initialElement(Variable& made, uint64_t& offset) {
  const unsigned bytes = bytesOf(made.type);
  if (!made.isUnsized && offset + bytes > made.bytes) {
    refuseSyntax(lexer_.peek().line, "'" + std::string(made.name) + "' has too many initial values");
  }
  const Token token = lexer_.peek();
  uint64_t bits = 0;
  const bool isNegative = token.is("-") && (lexer_.next(), true);
  const Token first = lexer_.peek();
  if (first.kind == TokenKind::real32 || first.kind == TokenKind::real64) {
    lexer_.next();
    double value = 0;
    float narrow = 0;
    if (first.kind == TokenKind::real32) {
      memcpy(&narrow, &first.bits, sizeof narrow);
      value = static_cast<double>(narrow);
    } else {
      memcpy(&value, &first.bits, sizeof value);
      narrow = static_cast<float>(value);
    }
    if (isNegative) value = -value, narrow = -narrow;
    if (bytes == 4) memcpy(&bits, &narrow, 4);
    else if (bytes == 8) memcpy(&bits, &value, 8);
    else unexpected(first);
  } else if (first.kind == TokenKind::integer) {
    const uint64_t value = static_cast<uint64_t>(constant());
    bits = isNegative ? 0 - value : value;
    if (accept("(")) {  // a byte of an address: 0xFF00(symbol)
      unsigned shift = 0;
      while (shift < 64 && ((value >> shift) & 0xff) != 0xff) shift += 8;
      const Token symbol = name();
      Variable::Reference reference{offset, symbol.text, 0, bytes, shift, false, symbol.line};
      if (symbol.is("generic")) {
        expect("(");
        reference.symbol = name().text;
        reference.isGeneric = true;
        if (lexer_.peek().is("+") || lexer_.peek().is("-")) reference.addend = constant();
        expect(")");
      }
      if (lexer_.peek().is("+") || lexer_.peek().is("-")) reference.addend += constant();
      expect(")");
      made.references.push_back(reference);
      bits = 0;
    } else if (made.type == Type::f32) {
      const float narrow = static_cast<float>(static_cast<int64_t>(bits));
      memcpy(&bits, &narrow, 4);
    } else if (made.type == Type::f64) {
      const double wide = static_cast<double>(static_cast<int64_t>(bits));
      memcpy(&bits, &wide, 8);
    }
  } else {
    const Token symbol = name();
    Variable::Reference reference{offset, symbol.text, 0, bytes, 0, false, symbol.line};
    if (symbol.is("generic")) {
      expect("(");
      reference.symbol = name().text;
      reference.isGeneric = true;
      if (lexer_.peek().is("+") || lexer_.peek().is("-")) reference.addend = constant();
      expect(")");
    }
    if (lexer_.peek().is("+") || lexer_.peek().is("-")) reference.addend += constant();
    made.references.push_back(reference);
  }
  if (made.bytesAtStart.size() < offset + bytes) made.bytesAtStart.resize(offset + bytes);
  memcpy(made.bytesAtStart.data() + offset, &bits, bytes < 8 ? bytes : 8);
  offset += bytes;
}

}  // namespace shoal::ptx
