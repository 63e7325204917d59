#include "link.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include "lexer.h"
#include "module.h"
#include "parser.h"
#include "problem.h"

namespace shoal::ptx {

namespace {

enum class Linkage { local, visible, weak, external };

// A declaration in a module, from its linkage to its semicolon or brace.
struct Declaration {
  std::string_view name;
  Linkage linkage = Linkage::local;
  size_t start = 0, end = 0;
  size_t kind = 0;   // the end of the linkage
  size_t value = 0;  // the start of the body or first value; `end` if there is none
  bool isDefinition = true;
};

struct Piece {
  const LinkInput* input;
  unsigned version = 0, target = 0;  // 85 means 8.5
  std::vector<Declaration> declarations;
  std::vector<std::pair<size_t, size_t>> left;  // ranges that are not copied to the result
  std::vector<Token> names;
};

size_t offsetOf(const LinkInput& input, std::string_view text) {
  return static_cast<size_t>(text.data() - input.text.data());
}

class Scanner {
 public:
  explicit Scanner(const LinkInput& input) : lexer_(input.text) { piece_.input = &input; }

  Piece run() {
    Syntax syntax;
    return namingVersion(syntax, [&] {
      Parser(piece_.input->text, syntax).run();
      piece_.version = syntax.version();
      piece_.target = syntax.target;
      while (peek().kind != TokenKind::end) topLevel();
      return std::move(piece_);
    });
  }

 private:
  const Token& peek() const { return lexer_.peek(); }
  size_t here() const {
    return peek().kind == TokenKind::end ? piece_.input->text.size() : offsetOf(*piece_.input, peek().text);
  }

  Token next() {
    Token token = lexer_.next();
    if (token.kind == TokenKind::name) piece_.names.push_back(token);
    if (token.is("{")) ++depth_;
    if (token.is("}")) --depth_;
    return token;
  }

  void leaveLine(const Token& first) {
    const size_t start = offsetOf(*piece_.input, first.text);
    while (peek().line == first.line && peek().kind != TokenKind::end) next();
    piece_.left.emplace_back(start, here());
  }

  // Line numbers and debug information are dropped, because they would mix the numbering of several modules.
  void topLevel() {
    const Token first = peek();
    if (first.is(".version") || first.is(".target") || first.is(".address_size") || first.is(".file") ||
        first.is(".loc")) {
      next();
      leaveLine(first);
    } else if (first.is(".section")) {
      const size_t start = here();
      while (!peek().is("{") && peek().kind != TokenKind::end) next();
      toEndOfBlock();
      piece_.left.emplace_back(start, here());
    } else if (first.is(".pragma")) {
      while (!next().is(";")) {
      }
    } else {
      declaration();
    }
  }

  void toEndOfBlock() {
    do next();
    while (depth_ > 0 && peek().kind != TokenKind::end);
  }

  void declaration() {
    Declaration made;
    made.start = here();
    bool isFunction = false;
    for (;;) {
      made.kind = here();
      const Token token = next();
      if (token.is(".extern")) made.linkage = Linkage::external;
      else if (token.is(".weak") || token.is(".common")) made.linkage = Linkage::weak;
      else if (token.is(".visible")) made.linkage = Linkage::visible;
      else {
        isFunction = token.is(".func") || token.is(".entry");
        if (token.is(".entry") && made.linkage == Linkage::local) made.linkage = Linkage::visible;
        break;
      }
    }
    if (isFunction) function(made);
    else variables(made);
  }

  void inParentheses() {
    for (int open = 0;;) {
      const Token token = next();
      if (token.is("(")) ++open;
      if (token.is(")") && --open == 0) return;
    }
  }

  void function(Declaration& made) {
    if (peek().is("(")) inParentheses();
    made.name = next().text;
    while (!peek().is("{") && !peek().is(";")) next();
    made.value = here();
    made.isDefinition = peek().is("{");
    if (made.isDefinition) toEndOfBlock();
    else next();
    made.end = here();
    piece_.declarations.push_back(made);
  }

  // `.global .u32 a, b = 5;` counts as one declaration per name.
  void variables(Declaration& made) {
    while (peek().kind == TokenKind::dotted || peek().kind == TokenKind::integer || peek().is("(")) {
      if (peek().is("(")) inParentheses();
      else next();
    }
    made.name = next().text;
    while (!peek().is("=") && !peek().is(";") && !peek().is(",")) next();
    made.value = here();
    made.isDefinition = made.linkage != Linkage::external;
    while (!peek().is(";")) {
      if (peek().is(",") && depth_ == 0) {
        refuseFeature(peek().line, "linking of a declaration with several names");
      }
      next();
    }
    next();
    made.end = here();
    piece_.declarations.push_back(made);
  }

  Lexer lexer_;
  int depth_ = 0;
  Piece piece_;
};

// Loads the module into temporary memory, only to check it.
void load(const std::string& text) {
  std::vector<std::unique_ptr<void, decltype(&free)>> memory;
  const auto place = [&](uint64_t bytes, bool) {
    memory.emplace_back(calloc(bytes, 1), &free);
    return reinterpret_cast<uint64_t>(memory.back().get());
  };
  loadModule(text, place, false);
}

// Local names of this input that other inputs also use. They get the input's number as a suffix.
std::unordered_map<std::string_view, std::string> ownNames(const std::vector<Piece>& pieces, size_t number) {
  std::unordered_map<std::string_view, std::string> names;
  for (const Declaration& each : pieces[number].declarations) {
    if (each.linkage != Linkage::local) continue;
    for (size_t other = 0; other < pieces.size(); ++other) {
      if (other == number) continue;
      for (const Declaration& candidate : pieces[other].declarations) {
        if (candidate.name == each.name) names[each.name] = std::string(each.name) + "$" + std::to_string(number);
      }
    }
  }
  return names;
}

// Takes library modules that define missing names, and then the modules that these need.
void takeNeeded(std::vector<Piece>& pieces, std::vector<Piece>& optional) {
  std::unordered_set<std::string_view> defined, missing;
  auto add = [&](const Piece& piece) {
    for (const Declaration& each : piece.declarations) {
      if (each.linkage != Linkage::local) (each.isDefinition ? defined : missing).insert(each.name);
    }
  };
  auto isNeeded = [&](const Piece& piece) {
    return std::any_of(piece.declarations.begin(), piece.declarations.end(), [&](const Declaration& each) {
      return each.isDefinition && each.linkage != Linkage::local && missing.count(each.name) != 0 &&
             defined.count(each.name) == 0;
    });
  };
  for (const Piece& each : pieces) add(each);
  for (auto found = optional.begin();
       (found = std::find_if(optional.begin(), optional.end(), isNeeded)) != optional.end();) {
    add(*found);
    pieces.push_back(std::move(*found));
    optional.erase(found);
  }
}

// If several inputs define a weak or common name, the first definition stays, unless another one is .visible. The
// others become declarations.
void chooseDefinitions(std::vector<Piece>& pieces) {
  struct Chosen {
    Piece* piece;
    Declaration* declaration;
  };
  std::unordered_map<std::string_view, Chosen> chosen;
  for (Piece& piece : pieces) {
    for (Declaration& each : piece.declarations) {
      if (!each.isDefinition || each.linkage == Linkage::local || each.linkage == Linkage::external) continue;
      auto [found, isFirst] = chosen.try_emplace(each.name, Chosen{&piece, &each});
      if (isFirst || found->second.piece == &piece) continue;
      Declaration& first = *found->second.declaration;
      if (each.linkage == Linkage::visible && first.linkage == Linkage::visible) {
        throw Refusal{CUDA_ERROR_INVALID_PTX, 0,
                      "Multiple definition of '" + std::string(each.name) + "' in '" + piece.input->name +
                          "', first defined in '" + found->second.piece->input->name + "'"};
      }
      if (each.linkage == Linkage::visible) {
        first.linkage = Linkage::external;
        found->second = Chosen{&piece, &each};
      } else {
        each.linkage = Linkage::external;
      }
    }
  }
}

void write(const Piece& piece, const std::unordered_map<std::string_view, std::string>& names, std::string& to) {
  const std::string& text = piece.input->text;
  // The replaced ranges, in order.
  std::vector<std::pair<std::pair<size_t, size_t>, std::string>> changes;
  for (const auto& each : piece.left) changes.emplace_back(each, "");
  for (const Declaration& each : piece.declarations) {
    if (!each.isDefinition || each.linkage != Linkage::external) continue;
    changes.emplace_back(std::make_pair(each.start, each.end),
                         ".extern " + text.substr(each.kind, each.value - each.kind) + ";\n");
  }
  for (const Token& each : piece.names) {
    const auto found = names.find(each.text);
    if (found == names.end()) continue;
    const size_t at = offsetOf(*piece.input, each.text);
    changes.emplace_back(std::make_pair(at, at + each.text.size()), found->second);
  }
  std::sort(changes.begin(), changes.end());
  size_t at = 0;
  for (const auto& [range, replacement] : changes) {
    if (range.first < at) continue;
    to.append(text, at, range.first - at).append(replacement);
    at = range.second;
  }
  to.append(text, at, std::string::npos).append("\n");
}

}  // namespace

void checkInput(const LinkInput& input) { Scanner(input).run(); }

std::string link(const std::vector<LinkInput>& inputs) {
  std::vector<Piece> pieces, optional;
  for (const LinkInput& each : inputs) (each.isOptional ? optional : pieces).push_back(Scanner(each).run());
  takeNeeded(pieces, optional);
  unsigned version = 60, target = 50;
  for (const Piece& each : pieces) {
    version = std::max(version, each.version);
    target = std::max(target, each.target);
  }
  chooseDefinitions(pieces);
  std::string whole = ".version " + std::to_string(version / 10) + "." + std::to_string(version % 10) +
                      "\n.target sm_" + std::to_string(target) + "\n.address_size 64\n";
  for (size_t number = 0; number < pieces.size(); ++number) write(pieces[number], ownNames(pieces, number), whole);
  load(whole);
  return whole;
}

}  // namespace shoal::ptx
