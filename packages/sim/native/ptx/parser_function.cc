// The parser for functions: parameters, declarations, labels and instructions.
#include <cstring>

#include "parser.h"
#include "problem.h"

namespace shoal::ptx {

namespace {

constexpr uint32_t kMostRegisters = 1u << 20;

constexpr std::string_view kSpecial[] = {"%tid",
                                         "%ntid",
                                         "%ctaid",
                                         "%nctaid",
                                         "%laneid",
                                         "%warpid",
                                         "%nwarpid",
                                         "%smid",
                                         "%nsmid",
                                         "%gridid",
                                         "%clock",
                                         "%clock_hi",
                                         "%clock64",
                                         "%lanemask_eq",
                                         "%lanemask_le",
                                         "%lanemask_lt",
                                         "%lanemask_ge",
                                         "%lanemask_gt",
                                         "%globaltimer",
                                         "%globaltimer_lo",
                                         "%globaltimer_hi",
                                         "%dynamic_smem_size",
                                         "%total_smem_size",
                                         "%aggr_smem_size",
                                         "%clusterid",
                                         "%nclusterid",
                                         "%cluster_ctaid",
                                         "%cluster_nctaid",
                                         "%cluster_ctarank",
                                         "%cluster_nctarank",
                                         "%is_explicit_cluster",
                                         "%reserved_smem_offset_begin",
                                         "%reserved_smem_offset_end",
                                         "%reserved_smem_offset_cap",
                                         "%reserved_smem_offset_0",
                                         "%reserved_smem_offset_1",
                                         "%current_graph_exec",
                                         "%pm0",
                                         "%pm1",
                                         "%pm2",
                                         "%pm3",
                                         "WARP_SZ"};

}  // namespace

int specialRegister(std::string_view name) {
  // %envreg0 to %envreg31 are the last entries.
  constexpr int count = static_cast<int>(sizeof kSpecial / sizeof *kSpecial);
  if (name.substr(0, 7) == "%envreg" && name.size() > 7 && name.size() < 10) {
    int index = 0;
    for (char c : name.substr(7)) {
      if (c < '0' || c > '9') return -1;
      index = index * 10 + (c - '0');
    }
    return index < 32 ? count + index : -1;
  }
  for (int index = 0; index < count; ++index) {
    if (kSpecial[index] == name) return index;
  }
  return -1;
}

bool Parser::findRegister(std::string_view text, uint32_t& index) const {
  size_t digits = text.size();
  while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
  uint64_t number = 0;
  const bool isNumbered =
      digits < text.size() && text.size() - digits < 8 && (text[digits] != '0' || text.size() - digits == 1);
  for (size_t at = digits; isNumbered && at < text.size(); ++at)
    number = number * 10 + static_cast<unsigned>(text[at] - '0');
  for (size_t depth = scopes_.size(); depth-- > 0;) {
    const Scope& scope = scopes_[depth];
    auto found = scope.registers.find(text);
    if (found != scope.registers.end()) {
      index = found->second;
      return true;
    }
    if (!isNumbered) continue;
    auto range = scope.ranges.find(text.substr(0, digits));
    if (range != scope.ranges.end() && number < range->second.count) {
      index = range->second.first + static_cast<uint32_t>(number);
      return true;
    }
  }
  return false;
}

Variable* Parser::findVariable(std::string_view text) const {
  for (size_t depth = scopes_.size(); depth-- > 0;) {
    auto found = scopes_[depth].variables.find(text);
    if (found != scopes_[depth].variables.end()) return found->second;
  }
  auto found = syntax_.variableNames.find(text);
  return found == syntax_.variableNames.end() ? nullptr : found->second;
}

uint32_t Parser::addRegisters(Type type, uint32_t count) {
  auto& registers = function_->registers;
  if (count > kMostRegisters || registers.size() + count > kMostRegisters)
    refuseSyntax(lexer_.peek().line, "too many registers");
  const auto first = static_cast<uint32_t>(registers.size());
  registers.resize(first + count, type);
  return first;
}

Variable* Parser::parameter() {
  const Token first = lexer_.next();
  if (first.is(".reg")) {
    const Token word = lexer_.next();
    const Type type = typeNamed(word.text);
    if (type == Type::none || type == Type::pred) unexpected(word);
    const Token named = name();
    syntax_.variables.emplace_back();
    Variable& made = syntax_.variables.back();
    made.name = named.text;
    made.type = type;
    made.space = Space::param;
    made.bytes = bytesOf(type) < 2 ? 2 : bytesOf(type);  // the distance between lanes in the register
    made.alignment = static_cast<unsigned>(made.bytes);
    made.line = named.line;
    made.reg = static_cast<int32_t>(addRegisters(type, 1));
    scopes_.back().registers[named.text] = static_cast<uint32_t>(made.reg);
    return &made;
  }
  if (!first.is(".param")) unexpected(first);
  // ".ptr .global .align 4" describes the memory that a pointer refers to. This alignment is not the parameter's.
  Variable made;
  made.space = Space::param;
  bool isPointer = false;
  while (lexer_.peek().kind == TokenKind::dotted) {
    const Token token = lexer_.next();
    if (token.is(".ptr")) isPointer = true;
    else if (token.is(".align")) {
      const uint64_t alignment = integer();
      if (!isPointer) made.alignment = static_cast<unsigned>(alignment);
    } else if (token.is(".global") || token.is(".const") || token.is(".local") || token.is(".shared")) continue;
    else if (token.is(".v2") || token.is(".v4")) refuseFeature(token.line, "a parameter that is a vector");
    else if ((made.type = typeNamed(token.text)) == Type::none) unexpected(token);
  }
  const unsigned element = bytesOf(made.type);
  if (made.type == Type::texref || made.type == Type::samplerref || made.type == Type::surfref)
    refuseFeature(first.line, "a texture parameter");
  if (element == 0 || (made.alignment & (made.alignment - 1)) != 0 || made.alignment > 4096) unexpected(lexer_.peek());
  if (made.alignment < element) made.alignment = element;
  const Token named = name();
  made.name = named.text;
  made.line = named.line;
  dimensions(made, element);
  if (made.bytes > 32764) refuseSyntax(made.line, "'" + std::string(made.name) + "' is too large for a parameter");
  syntax_.variables.push_back(std::move(made));
  Variable* kept = &syntax_.variables.back();
  if (!scopes_.empty() && !kept->name.empty() && kept->name != "_") scopes_.back().variables[kept->name] = kept;
  return kept;
}

std::vector<Variable*> Parser::parameters() {
  std::vector<Variable*> list;
  expect("(");
  if (accept(")")) return list;
  do list.push_back(parameter());
  while (accept(","));
  expect(")");
  return list;
}

void Parser::threeNumbers(unsigned (&numbers)[3]) {
  for (unsigned index = 0; index < 3; ++index) {
    numbers[index] = static_cast<unsigned>(integer());
    if (!accept(",")) {
      for (unsigned rest = index + 1; rest < 3; ++rest) numbers[rest] = 1;
      return;
    }
  }
}

void Parser::tuning(Function& made) {
  while (lexer_.peek().kind == TokenKind::dotted) {
    const Token token = lexer_.next();
    if (token.is(".maxntid")) threeNumbers(made.maxThreads);
    else if (token.is(".reqntid")) threeNumbers(made.requiredThreads);
    else if (token.is(".reqnctapercluster")) threeNumbers(made.cluster);
    else if (token.is(".minnctapersm") || token.is(".maxnctapersm")) made.minBlocks = static_cast<unsigned>(integer());
    else if (token.is(".maxnreg")) made.maxRegisters = static_cast<unsigned>(integer());
    else if (token.is(".maxclusterrank")) integer();
    else if (token.is(".explicitcluster")) made.mustSetCluster = true;
    else if (token.is(".noreturn") || token.is(".blocksareclusters")) continue;
    else if (token.is(".abi_preserve") || token.is(".abi_preserve_control")) integer();
    else if (token.is(".pragma")) skipStatement();
    else unexpected(token);
  }
}

void Parser::function(bool isKernel, bool isExtern) {
  Function made;
  function_ = &made;
  scopes_.assign(1, Scope());
  made.isKernel = isKernel;
  made.isExtern = isExtern;
  if (!isKernel && lexer_.peek().is(".attribute")) refuseFeature(lexer_.peek().line, "an attribute of a function");
  if (!isKernel && lexer_.peek().is("(")) made.results = parameters();
  const Token named = name();
  made.name = named.text;
  made.line = named.line;
  if (lexer_.peek().is("(")) made.parameters = parameters();
  tuning(made);
  Function*& known = syntax_.functionNames[made.name];
  if (known != nullptr && (known->isDefined && !lexer_.peek().is(";"))) {
    refuseSyntax(named.line, "'" + std::string(made.name) + "' is defined twice");
  }
  if (accept(";")) {
    if (known == nullptr) {
      syntax_.functions.push_back(std::move(made));
      known = &syntax_.functions.back();
    }
    function_ = nullptr;
    return;
  }
  if (known == nullptr) {
    syntax_.functions.push_back(std::move(made));
    known = &syntax_.functions.back();
  } else {
    *known = std::move(made);
  }
  known->isDefined = true;
  known->isExtern = false;
  function_ = known;
  expect("{");
  body();
  function_ = nullptr;
}

// Parses a function's block and nested blocks. Not recursive, because the input decides the depth.
void Parser::body() {
  sourceFile_ = sourceLine_ = 0;
  size_t depth = 1;
  scopes_.emplace_back();
  while (depth > 0) {
    const Token token = lexer_.next();
    if (token.is("{")) {
      ++depth;
      scopes_.emplace_back();
      if (depth > 1000) refuseSyntax(token.line, "blocks are nested too deeply");
    } else if (token.is("}")) {
      --depth;
      scopes_.pop_back();
    } else if (token.is(";")) {
      continue;
    } else if (token.kind == TokenKind::dotted) {
      if (token.is(".reg")) declareRegisters();
      else if (token.is(".local") || token.is(".param") || token.is(".shared")) {
        const Space space = token.is(".local") ? Space::local : token.is(".param") ? Space::param : Space::shared;
        do {
          Variable* made = variable(space, false, true);
          (space == Space::shared ? function_->shared : function_->locals).push_back(made);
        } while (accept(","));
        expect(";");
      } else if (token.is(".loc")) {
        sourceLine(token.line);
      } else if (token.is(".pragma")) {
        skipStatement();
      } else {
        unexpected(token);
      }
    } else {
      statement(token);
    }
  }
}

void Parser::declareRegisters() {
  Type type = Type::none;
  uint32_t lanes = 1;
  while (lexer_.peek().kind == TokenKind::dotted) {
    const Token token = lexer_.next();
    if (token.is(".v2") || token.is(".v4")) {
      lanes = token.is(".v2") ? 2 : 4;
      continue;
    }
    type = typeNamed(token.text);
    if (type == Type::none) unexpected(token);
  }
  if (type != Type::pred && bytesOf(type) == 0) unexpected(lexer_.peek());
  do {
    const Token named = name();
    if (lanes > 1) {
      hasVectors_ = true;
      scopes_.back().vectors[named.text] = lanes;
      scopes_.back().registers[named.text] = addRegisters(type, lanes);
    } else if (accept("<")) {
      const uint64_t count = integer();
      expect(">");
      if (count > kMostRegisters) refuseSyntax(named.line, "too many registers");
      scopes_.back().ranges[named.text] = {addRegisters(type, static_cast<uint32_t>(count)),
                                           static_cast<uint32_t>(count)};
    } else {
      scopes_.back().registers[named.text] = addRegisters(type, 1);
    }
  } while (accept(","));
  expect(";");
}

// After "name:", there may be a branch list or a prototype, which then has this name.
void Parser::labelled(const Token& label) {
  const Token next = lexer_.peek();
  if (next.is(".branchtargets") || next.is(".calltargets")) {
    lexer_.next();
    auto& targets = function_->targets[label.text];
    do targets.push_back(name().text);
    while (accept(","));
    expect(";");
  } else if (next.is(".callprototype")) {
    skipStatement();  // an indirect call takes the sizes of its arguments from their variables
  } else if (!function_->labels.emplace(label.text, function_->statements.size()).second) {
    refuseSyntax(label.line, "the label '" + std::string(label.text) + "' is there twice");
  }
}

void Parser::statement(const Token& first) {
  Statement made;
  Token token = first;
  if (token.kind == TokenKind::name && lexer_.peek().is(":")) {
    lexer_.next();
    return labelled(token);
  }
  if (token.is("@")) {
    made.isGuardNegated = accept("!");
    const Token named = name();
    uint32_t index = 0;
    if (!findRegister(named.text, index) || function_->registers[index] != Type::pred) {
      refuseSyntax(named.line, "'" + std::string(named.text) + "' is no predicate");
    }
    made.guard = static_cast<int32_t>(index);
    token = lexer_.next();
  }
  if (token.kind != TokenKind::name || token.text[0] == '%') unexpected(token);
  made.line = token.line;
  made.sourceFile = sourceFile_;
  made.sourceLine = sourceLine_;
  made.opcode = token.text;
  hasParts_ = token.text[0] == 'v' && !token.is("vote");
  while (lexer_.peek().kind == TokenKind::dotted) made.modifiers.push_back(lexer_.next().text);
  instruction_ = made.opcode;
  for (const std::string_view modifier : made.modifiers) instruction_ += modifier;
  if (!lexer_.peek().is(";")) {
    do made.operands.push_back(operand(0));
    while (accept(","));
  }
  expect(";");
  instruction_.clear();
  function_->statements.push_back(std::move(made));
}

// The number of registers of a vector, or 0 for other names.
uint32_t Parser::lanesOf(std::string_view text) const {
  for (size_t depth = scopes_.size(); depth-- > 0;) {
    const Scope& scope = scopes_[depth];
    if (scope.registers.count(text) == 0) continue;
    auto found = scope.vectors.find(text);
    return found == scope.vectors.end() ? 0 : found->second;
  }
  return 0;
}

// All registers of a vector, or one element selected by ".y" or ".g".
Operand Parser::elements(const Operand& first, uint32_t lanes) {
  if (lexer_.peek().kind != TokenKind::dotted) {
    Operand all;
    all.kind = OperandKind::vector;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      all.parts.push_back(first);
      all.parts.back().reg += lane;
    }
    return all;
  }
  const Token part = lexer_.next();
  const std::string_view names = "xyzwrgba";
  const size_t at = part.text.size() == 2 ? names.find(part.text[1]) : std::string_view::npos;
  if (at == std::string_view::npos || at % 4 >= lanes) unexpected(part);
  Operand made = first;
  made.reg += static_cast<uint32_t>(at % 4);
  return made;
}

Operand Parser::named(const Token& token) {
  Operand made;
  made.name = token.text;
  if (token.is("_")) return made;
  if (findRegister(token.text, made.reg)) {
    made.kind = OperandKind::reg;
    if (const uint32_t lanes = hasVectors_ ? lanesOf(token.text) : 0) return elements(made, lanes);
    if (hasParts_ && lexer_.peek().kind == TokenKind::dotted) made.selector = lexer_.next().text;
    return made;
  }
  const int special = specialRegister(token.text);
  if (special >= 0) {
    made.kind = OperandKind::special;
    made.reg = static_cast<uint32_t>(special);
    if (lexer_.peek().kind == TokenKind::dotted) {
      const Token part = lexer_.next();
      const char* at = part.text.size() == 2 ? strchr("xyzw", part.text[1]) : nullptr;
      if (at == nullptr || *at == '\0') unexpected(part);
      made.value = part.text[1] == 'w' ? 3 : part.text[1] - 'x';
    }
    return made;
  }
  made.variable = findVariable(token.text);
  made.kind = made.variable != nullptr ? OperandKind::variable : OperandKind::name;
  if (made.kind == OperandKind::name && token.text[0] == '%')
    refuseSyntax(token.line, "'" + std::string(token.text) + "' is not declared");
  return made;
}

void Parser::offset(Operand& made) {
  while (lexer_.peek().is("+") || lexer_.peek().is("-"))
    made.value = static_cast<int64_t>(static_cast<uint64_t>(made.value) + static_cast<uint64_t>(constant()));
}

Operand Parser::primary(unsigned depth) {
  if (depth > 4) refuseSyntax(lexer_.peek().line, "an operand is nested too deeply");
  const Token token = lexer_.peek();
  Operand made;
  if (token.is("!")) {
    lexer_.next();
    made = primary(depth + 1);
    made.isNegated = !made.isNegated;
    return made;
  }
  if (token.is("-") || token.is("~") || token.kind == TokenKind::integer) {
    if (token.is("-")) {
      lexer_.next();
      const Token number = lexer_.peek();
      if (hasParts_ && number.kind == TokenKind::name) {
        made = primary(depth + 1);
        made.isNegated = !made.isNegated;
        return made;
      }
      if (number.kind == TokenKind::real32 || number.kind == TokenKind::real64) {
        lexer_.next();
        made.kind = number.kind == TokenKind::real32 ? OperandKind::real32 : OperandKind::real64;
        made.value = static_cast<int64_t>(number.bits ^
                                          (number.kind == TokenKind::real32 ? uint64_t{1} << 31 : uint64_t{1} << 63));
        return made;
      }
      made.kind = OperandKind::integer;
      made.value = static_cast<int64_t>(0 - static_cast<uint64_t>(constant()));
      return made;
    }
    made.kind = OperandKind::integer;
    made.value = constant();
    return made;
  }
  if (token.kind == TokenKind::real32 || token.kind == TokenKind::real64) {
    lexer_.next();
    made.kind = token.kind == TokenKind::real32 ? OperandKind::real32 : OperandKind::real64;
    made.value = static_cast<int64_t>(token.bits);
    return made;
  }
  if (token.is("{") || token.is("(") || token.is("[")) {
    lexer_.next();
    made.kind = token.is("{") ? OperandKind::vector : token.is("(") ? OperandKind::list : OperandKind::address;
    const char* end = token.is("{") ? "}" : token.is("(") ? ")" : "]";
    if (accept(end)) return made;
    do {
      made.parts.push_back(operand(depth + 1));
      if (made.parts.size() > 256) refuseSyntax(token.line, "an operand has too many parts");
    } while (accept(","));
    expect(end);
    return made;
  }
  const Token word = name();
  made = named(word);
  if (made.kind == OperandKind::variable || (made.kind == OperandKind::reg && depth > 0)) offset(made);
  return made;
}

Operand Parser::operand(unsigned depth) {
  Operand made = primary(depth);
  if (!accept("|")) return made;
  Operand pair;
  pair.kind = OperandKind::pair;
  pair.parts.push_back(std::move(made));
  pair.parts.push_back(primary(depth + 1));
  return pair;
}

}  // namespace shoal::ptx
