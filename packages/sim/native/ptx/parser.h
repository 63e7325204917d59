// Reads PTX into its syntax.
#pragma once

#include <string>

#include "lexer.h"
#include "syntax.h"

namespace shoal::ptx {

// The index of a special register, or -1 for other names.
int specialRegister(std::string_view name);

class Parser {
 public:
  Parser(std::string_view text, Syntax& syntax) : lexer_(text), syntax_(syntax) {}
  void run();

 private:
  struct Range {
    uint32_t first, count;
  };
  struct Scope {
    std::unordered_map<std::string_view, uint32_t> registers;
    std::unordered_map<std::string_view, uint32_t> vectors;  // number of registers in each vector
    std::unordered_map<std::string_view, Range> ranges;
    std::unordered_map<std::string_view, Variable*> variables;
  };

  // words
  Token expect(std::string_view word);
  Token name();
  bool accept(std::string_view word);
  uint64_t integer();
  int64_t constant();
  [[noreturn]] void unexpected(const Token& token) const;
  void skipStatement();

  // the module
  void version();
  void target();
  void linkage();
  void section();
  Variable* variable(Space space, bool isExtern, bool isFunctionScope);
  void dimensions(Variable& made, uint64_t elementBytes);
  void initialize(Variable& made);
  void initialElements(Variable& made, uint64_t& offset, unsigned depth);
  void initialElement(Variable& made, uint64_t& offset);
  void attributes(Variable& made);

  // functions
  void function(bool isKernel, bool isExtern);
  std::vector<Variable*> parameters();
  Variable* parameter();
  void tuning(Function& made);
  void threeNumbers(unsigned (&numbers)[3]);
  void body();
  void block();
  void declareRegisters();
  void labelled(const Token& label);
  void statement(const Token& first);
  void directiveInBody();
  void sourceFile();
  void sourceLine(unsigned line);
  void skipLine(unsigned line);

  // operands
  Operand operand(unsigned depth);
  Operand primary(unsigned depth);
  Operand named(const Token& token);
  uint32_t lanesOf(std::string_view text) const;
  Operand elements(const Operand& first, uint32_t lanes);
  void offset(Operand& made);
  bool findRegister(std::string_view name, uint32_t& index) const;
  Variable* findVariable(std::string_view name) const;
  uint32_t addRegisters(Type type, uint32_t count);

  Lexer lexer_;
  Syntax& syntax_;
  std::string instruction_;  // the current instruction, for error messages
  bool hasVectors_ = false;  // true if any function has vector registers
  bool hasParts_ = false;    // the operands of this instruction may be parts of registers
  Function* function_ = nullptr;
  uint32_t sourceFile_ = 0, sourceLine_ = 0;
  std::vector<Scope> scopes_;
};

}  // namespace shoal::ptx
