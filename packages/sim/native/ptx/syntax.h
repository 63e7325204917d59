// Parsed PTX, before decoding: a module's declarations and the instructions of its functions.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "types.h"

namespace shoal::ptx {

struct Function;

struct Variable {
  // The address of a symbol within the initial bytes of a variable.
  struct Reference {
    uint64_t offset;
    std::string_view symbol;
    int64_t addend;
    unsigned bytes;
    unsigned shift;  // if only one byte of the address is stored
    bool isGeneric;
    unsigned line;
  };
  std::string_view name;
  Space space = Space::global;
  Type type = Type::none;
  uint64_t bytes = 0;
  unsigned alignment = 1;
  unsigned line = 0;
  bool isExtern = false;
  bool isManaged = false;
  bool isUnsized = false;
  bool isFunctionScope = false;
  int32_t reg = -1;  // set for a parameter in a register
  std::vector<uint8_t> bytesAtStart;
  std::vector<Reference> references;
  uint64_t address = 0;  // in memory, in shared memory, or in the function's frame
};

enum class OperandKind : uint8_t {
  reg,
  variable,
  integer,
  real32,
  real64,
  special,
  name,
  sink,
  vector,
  address,
  list,
  pair
};

struct Operand {
  OperandKind kind = OperandKind::sink;
  bool isNegated = false;
  bool isUnsigned = false;
  uint32_t reg = 0;
  Variable* variable = nullptr;
  std::string_view name;
  std::string_view selector;  // of a register, such as ".h1" or ".b3210"
  int64_t value = 0;          // a number, the bits of a float, or the offset from a variable or address
  std::vector<Operand> parts;
};

struct Statement {
  unsigned line = 0;
  uint32_t sourceFile = 0, sourceLine = 0;  // from the preceding .loc
  int32_t guard = -1;
  bool isGuardNegated = false;
  std::string_view opcode;
  std::vector<std::string_view> modifiers;
  std::vector<Operand> operands;
};

struct Prototype {
  std::vector<Variable*> results, parameters;
};

struct Function {
  std::string_view name;
  bool isKernel = false;
  bool isDefined = false;
  bool isExtern = false;
  unsigned line = 0;
  std::vector<Variable*> results, parameters;
  std::vector<Type> registers;
  std::vector<Variable*> locals;  // .local and .param variables
  std::vector<Variable*> shared;
  std::vector<Statement> statements;
  std::unordered_map<std::string_view, size_t> labels;  // the index of the following statement
  std::unordered_map<std::string_view, std::vector<std::string_view>> targets;
  unsigned maxThreads[3] = {0, 0, 0};
  unsigned requiredThreads[3] = {0, 0, 0};
  unsigned cluster[3] = {0, 0, 0};
  bool mustSetCluster = false;
  unsigned minBlocks = 0, maxRegisters = 0;
};

struct Syntax {
  // The newest PTX version whose instructions the decoder knows: 90 means 9.0.
  static constexpr unsigned kNewestKnown = 90;

  unsigned version() const { return versionMajor * 10 + versionMinor; }

  unsigned versionMajor = 0, versionMinor = 0;
  unsigned target = 0;
  std::deque<Variable> variables;
  std::deque<Function> functions;
  std::map<uint32_t, std::string_view> files;
  std::vector<Variable*> globals;  // of the module: .global, .const, .shared
  std::unordered_map<std::string_view, Variable*> variableNames;
  std::unordered_map<std::string_view, Function*> functionNames;
};

}  // namespace shoal::ptx
