// Turns syntax into executable instructions: assigns places to registers and constants, and a loop to each instruction.
#pragma once

#include <map>
#include <string>

#include "machine.h"
#include "problem.h"
#include "syntax.h"

namespace shoal::ptx {

enum class Special : uint8_t {
  tid,
  ntid,
  ctaid,
  nctaid,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  clock,
  clockHigh,
  clock64,
  maskEq,
  maskLe,
  maskLt,
  maskGe,
  maskGt,
  globaltimer,
  globaltimerLow,
  globaltimerHigh,
  dynamicShared,
  totalShared,
  aggregateShared,
  clusterid,
  nclusterid,
  clusterCtaid,
  clusterNctaid,
  clusterCtarank,
  clusterNctarank,
  isExplicitCluster,
  reservedBegin,
  reservedEnd,
  reservedCap,
  reserved0,
  reserved1,
  graphExec,
  pm0,
  pm1,
  pm2,
  pm3,
  warpSize,
  envreg0,
  dynamicSharedBase = envreg0 + 32,
};

enum class Builtin : uint8_t { vprintf, malloc, free, assertFail, setConditional, launchGraph };
enum class BarrierOp : uint8_t;
int builtinNamed(std::string_view name);

constexpr uint32_t kNoOperand = ~0u;

class Decoder {
 public:
  Decoder(Syntax& syntax, Program& program) : syntax_(syntax), program_(program) {}
  // Decodes every function. The caller has already assigned addresses to variables and indices to functions.
  void run();
  static uint64_t addressOfFunction(size_t index) { return kCodeWindow + 16 * (index + 1); }

 private:
  using Method = void (Decoder::*)();
  struct Entry {
    Method method;
    Op op;
  };
  struct Address {
    uint32_t base = 0;
    int64_t offset = 0;
    bool isWide = true;
    bool isFrameRelative = false;
    Variable* variable = nullptr;
    Space space = Space::generic;
  };
  static const std::map<std::string_view, Entry>& entries();

  void function(Function& from, CodeOf& to);
  void statement(const Statement& from);

  // modifiers
  bool take(std::string_view modifier);
  Type takeType();
  Rounding takeRounding();
  void takeScope();
  // True if there is an extra operand with a cache policy.
  bool hasPolicy() const;
  Space takeSpace(Space otherwise);
  void finishModifiers();
  [[noreturn]] void refuse() const;  // refuses this instruction by name
  [[noreturn]] void wrong(const std::string& why) const;
  std::string nameOf() const;
  void requireOperands(size_t least, size_t most) const;
  void requireType(Type type, uint64_t allowed) const;

  // operands
  const Operand& operand(size_t index) const { return statement_->operands[index]; }
  uint32_t place(uint32_t index);
  uint32_t temporary(unsigned bytes);
  uint32_t constant(uint64_t bits, unsigned bytes);
  uint32_t input(const Operand& from, Type type);
  uint32_t output(const Operand& to, Type type);
  uint32_t inputPredicate(const Operand& from, bool& isNegated);
  uint32_t outputPredicate(const Operand& to);
  uint32_t anyInput(const Operand& from, unsigned least, unsigned& bytes);  // a register of at least this size
  uint32_t anyOutput(const Operand& to, unsigned least, unsigned& bytes);
  Address address(const Operand& from, Space space);
  uint32_t addressValue(const Operand& from, unsigned bytes);
  void readInto(uint32_t to, Special which, unsigned component, unsigned bytes, bool isLast);
  uint32_t special(Special which, unsigned component, unsigned bytes);
  uint64_t bitsOf(const Operand& from, Type type) const;

  int takeShape();
  void fragmentRegisters(const Operand& from, Type type, size_t count, bool isOutput, std::vector<uint32_t>& to);

  // output
  Instr& emit(const Key& key, bool isLast = true);
  Instr& emitFlow(Flow flow);
  Instr& emitHandler(Handler handler);  // an instruction that is not a loop over lanes
  Instr& barrierAt(const Operand& from, Space space, BarrierOp op);
  void keepAddress(std::vector<uint32_t>& words, size_t at, const Operand& from, Space space);
  void setAddress(Instr& instr, const Address& from);
  uint32_t packKey(const Key& key);
  uint32_t keep(const std::vector<uint32_t>& operands);

  // instructions, by kind
  void arithmetic();
  void fusedArithmetic();
  void multiply();
  void multiplyAdd();
  void carry();
  void unaryFloat();
  void unaryBits();
  void logic();
  void shift();
  void funnel();
  void lop3();
  void permute();
  void dot();
  void field();
  void sad();
  void extend();
  void findNth();
  void setPredicate();
  void setValue();
  void select();
  void selectSign();
  void testProperty();
  void copySign();
  void convert();
  void convertPack();
  void move();
  void load();
  void store();
  void atomic();
  void prefetch();
  void convertAddress();
  void isSpace();
  void mapRank();
  void shuffle();
  void vote();
  void match();
  void redux();
  void activeMask();
  void elect();
  void branch();
  void branchIndexed();
  void call();
  void leave();
  void barrier();
  void clusterBarrier();
  void fence();
  void nothing();
  void trap();
  void nanosleep();
  void matrix();
  void fragment();
  void loadMatrix();
  void moveMatrix();
  void asyncCopy();
  void copyArrives();
  void asyncBarrier();
  void bulkCopy(bool isReduction);
  void storeAsync();
  void video();
  size_t takeGeometry(std::vector<uint32_t>& words);
  void keepTexture(std::vector<uint32_t>& words, const Operand& from, size_t count, Type type);
  void keepParts(std::vector<uint32_t>& words, size_t at, const Operand& from, size_t count, Type type);
  void finishTexture(const std::vector<uint32_t>& words);
  void texture();
  void askTexture();
  void surface();
  uint32_t step(const Key& key, std::initializer_list<uint32_t> inputs, uint32_t to = kNoOperand);
  uint32_t bitStep(Op op, Type type, uint32_t a, uint32_t b, uint32_t to = kNoOperand);
  uint32_t widened(const Operand& from, Type type);
  void eachOfTwo(Key key, size_t count);
  void mixed(const Key& key, Type from, size_t count);
  void extremes(Key key, bool isAbsolute, bool hasProductSign);
  void lop3WithPredicate(bool isAnd);
  void convertToFinite(Key key);
  void createPolicy();
  void getRank();
  void unsupported();

  Syntax& syntax_;
  Program& program_;
  Function* function_ = nullptr;
  CodeOf* code_ = nullptr;
  const Statement* statement_ = nullptr;
  std::vector<bool> isTaken_;
  std::vector<uint32_t> places_;
  uint32_t frameBytes_ = 0;
  uint32_t carryFlag_ = kNoOperand;
  uint8_t order_ = 0;  // the order of the statement's memory access
  std::map<std::pair<uint64_t, unsigned>, uint32_t> constants_;
  struct Patch {
    size_t instr;
    std::string_view label;
    unsigned line;
  };
  std::vector<Patch> patches_;
  struct TablePatch {
    size_t table;
    std::vector<std::string_view> labels;
    unsigned line;
  };
  std::vector<TablePatch> tablePatches_;
};

constexpr uint64_t bit(Type type) { return uint64_t{1} << static_cast<unsigned>(type); }
template <class... Types>
constexpr uint64_t bits(Types... types) {
  return (bit(types) | ...);
}
constexpr uint64_t kWords = bits(Type::u16, Type::u32, Type::u64, Type::s16, Type::s32, Type::s64);
constexpr uint64_t kBitTypes = bits(Type::b16, Type::b32, Type::b64);
constexpr uint64_t kReals = bits(Type::f32, Type::f64);
constexpr uint64_t kHalves = bits(Type::f16, Type::f16x2, Type::bf16, Type::bf16x2);

}  // namespace shoal::ptx
