// The machine: decoded instructions, warps, and a warp's view of its block.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "key.h"
#include "unwritten.h"

namespace shoal::ptx {

struct Block;
struct Instr;
struct Warp;
class Worker;

constexpr int kLanes = 32;

// Executes the instruction for the lanes of the mask.
using Handler = void (*)(Warp&, const Instr&, uint32_t mask);

// Control flow that the executor handles. All other instructions are `plain` and run by their handler.
enum class Flow : uint8_t {
  plain,
  branch,
  branchIndexed,
  call,
  ret,
  exit,
  warpSync,
  warpBarrier,
  barrier,
  clusterArrive,
  clusterWait,
  yield,
  phaseWait,
  phaseTest
};

// An operand is an offset into the registers of the frame, or, with the top bit set, into the constants of the program.
// A register holds its 32 lanes in order; a predicate holds one bit per lane.
constexpr uint32_t kConstant = 0x80000000u;

struct Instr {
  Handler run = nullptr;
  // The places of registers, predicates and constants: the result, the inputs, and the lanes that take part.
  union {
    uint32_t operands[6] = {};
    struct {
      uint32_t to, a, b, c, d, members;
    };
  };
  int64_t imm = 0;
  uint32_t guard = 0;  // 0: always; otherwise 1 + the offset of the predicate
  uint32_t line = 0;
  uint32_t target = 0;  // a program counter, or an index into the program's lists
  uint32_t slot = 0;    // memory instructions: the slot where each worker caches the range it found
  Flow flow = Flow::plain;
  bool isGuardNegated = false;
  bool isFrameRelative = false;  // an address in the frame's local memory
  bool isWide = true;            // a 64-bit address
  union {
    bool keepsOld = false;    // atomics: the old value goes to `to`
    bool isShared;            // barriers in memory: the address is a shared address
    bool hasThird;            // packing conversions: `c` is packed, too
    bool isPredicateNegated;  // barriers with a reduction: `c` is negated
  };
  uint8_t count = 1;
  union {
    uint8_t negated = 0;  // a bit per negated predicate
    uint8_t combine;      // a Combine, plus 4 if the predicate in `d` is negated
    uint8_t special;      // a Special
    uint8_t space;        // a Space
    uint8_t property;     // a Property
    uint8_t rounding;     // a Rounding
    uint8_t asyncOp;      // a BarrierOp
    uint8_t barrierKind;  // 0: wait, 1: arrive only; with a reduction: 2: count, 3: all, 4: any
    uint8_t fromBytes;    // the size of the source's register
  };
  uint8_t order = 0;  // memory instructions: for the checker; barriers: set if all lanes must reach the same barrier
};

// The memory order of an access.
constexpr uint8_t kStrong = 1, kAcquire = 2, kRelease = 4, kAtomic = 8;

// A parameter or argument of a function: a register, or bytes in the frame's local memory.
struct Passed {
  bool isRegister = false;
  uint32_t at = 0;  // an operand, or an offset in the frame
  uint32_t bytes = 0;
};

struct CallSite {
  int32_t function = -1;  // -1: a call by address
  int32_t builtin = -1;
  uint32_t address = 0;  // operand of an indirect call
  std::vector<Passed> results, arguments;
};

struct CodeOf {
  std::string name;
  bool isDefined = false, isKernel = false;
  uint32_t entry = 0;
  uint32_t registerBytes = 0;
  uint32_t localBytes = 0, unusedLocalBytes = 0;
  std::vector<Passed> results, parameters;
};

// The system's part of a block's shared memory, since compute capability 8.0.
constexpr uint32_t kReservedSharedBytes = 1024;

struct Program {
  std::vector<Instr> code;
  std::vector<uint8_t> constantBytes;
  const uint8_t* constants = nullptr;  // aligned for vectors
  std::vector<uint32_t> operands;      // for instructions with more than six operands
  std::vector<CallSite> calls;
  std::vector<std::vector<uint32_t>> tables;  // for indexed branches
  std::vector<CodeOf> functions;
  uint32_t slots = 0;
  bool usesReservedShared = false;
  // The source line of each instruction. Only filled if the checker is on.
  struct SourceLine {
    uint32_t file, line;
  };
  std::vector<SourceLine> sources;
  std::map<uint32_t, std::string> files;
};

struct Frame {
  Frame* parent = nullptr;
  const CodeOf* code = nullptr;
  uint8_t* registers = nullptr;
  uint32_t returnTo = 0;
  uint32_t localBase = 0;
  uint32_t depth = 0;
  uint32_t users = 0;  // splits in this frame, and frames called from it
};

enum class Wait : uint8_t { ready, warp, barrier, cluster, phase };

// The lanes of a warp that are at the same instruction.
struct Split {
  uint32_t mask = 0;
  uint32_t pc = 0;
  Frame* frame = nullptr;
  Wait wait = Wait::ready;
  bool isReleased = false;  // its barrier is complete
  uint8_t barrier = 0;
  uint32_t awaited = 0;  // lanes that a warp-wide operation waits for
  uint32_t turn = 0;     // increases when the split has spun while others waited
};

// A cached range of addresses with allowed access.
struct Range {
  uint64_t base = 0;
  uint64_t end = 0;
  bool isWritable = false;
};

struct Warp {
  // The most-used members come first. They belong to the running split.
  uint8_t* registers = nullptr;
  const uint8_t* constants = nullptr;
  uint32_t live = 0;  // lanes that have not exited
  uint32_t localBase = 0;
  uint8_t* local = nullptr;
  uint32_t localStride = 0;
  uint8_t* shared = nullptr;
  uint32_t sharedBytes = 0;
  const uint8_t* parameters = nullptr;
  uint32_t parameterBytes = 0;
  Range* ranges = nullptr;
  const uint32_t* operands = nullptr;
  uint32_t running = 0;  // the split's lanes, before the guard
  uint32_t index = 0;
  uint32_t barrierCount = 0;  // result of the last barrier with a reduction
  bool isBarrierAll = false, isBarrierAny = false;
  uint64_t clusterPhase = 0;  // the cluster's phase when this warp arrived at its barrier
  Block* block = nullptr;
  Worker* worker = nullptr;
  std::vector<Split> splits;
  uint32_t arrived[16] = {};  // lanes that have arrived at each barrier
  uint32_t turn = 0;
  int checkedLane = -1;  // the lane of the current access, if the checker is on
  uint32_t threadX[kLanes], threadY[kLanes], threadZ[kLanes];
};

// The lanes for which a predicate is true. A constant may take its place.
inline uint32_t predicateOf(const Warp& warp, uint32_t operand) {
  const uint8_t* base = (operand & kConstant) != 0 ? warp.constants : warp.registers;
  uint32_t value;
  memcpy(&value, base + (operand & ~kConstant), 4);
  return value;
}

// The memory at an address, with at least `size` allowed bytes. Throws a Fault otherwise.
uint8_t* resolveGlobal(Warp& warp, Range& cached, uint64_t address, unsigned size, bool isWrite);
uint8_t* resolveWindow(Warp& warp, int lane, uint64_t address, unsigned size, bool isWrite);
[[noreturn]] void failMisaligned(uint64_t address, unsigned size);
[[noreturn]] void failOutOfRange(const char* space, uint64_t address, unsigned size);
void readSpecial(Warp& warp, const Instr& instr, uint32_t mask);
void runTrap(Warp& warp, const Instr& instr, uint32_t mask);
void swapWide(Warp& warp, const Instr& instr, uint32_t mask);  // atom of 128 bits

// With isChecking(), loops that check every access replace the fast loops.
void checkAccess(Warp& warp, const Instr& instr, int lane, const uint8_t* at, unsigned size, bool isWrite);
void runCheckedFence(Warp& warp, const Instr& instr, uint32_t mask);

// The loop for a key, in the best build for this CPU; null if there is none.
Handler findHandler(const Key& key);

}  // namespace shoal::ptx
