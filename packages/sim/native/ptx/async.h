// Barriers in shared memory that count arrivals and bytes, and copies that signal them on completion.
#pragma once

#include "machine.h"

namespace shoal::ptx {

// Instr.extra of mbarrier. to = the result or none, a = the address, b = the operand or none.
enum class BarrierOp : uint8_t {
  init,
  invalidate,
  expect,
  complete,
  arrive,
  arriveDrop,
  arriveExpect,
  arriveDropExpect,
  test,
  testParity,
  pendingCount,
  check
};

// An address in warp.operands: its operand, the offset to add, and whether it has 64 bits. Shared addresses become
// generic addresses.
enum AddressWord : unsigned {
  addressOperand,
  addressOffset,
  addressIsWide,
  addressIsShared,
  addressIsFrame,
  addressWords
};

// The words of a copy: its addresses, followed by these. A missing operand is kNoneGiven.
enum CopyWord : unsigned {
  copyTo,
  copyFrom = copyTo + addressWords,
  copyBarrier = copyFrom + addressWords,
  copyBytes = copyBarrier + addressWords,
  copySourceBytes,
  copyIgnored,
  copyIsIgnoredNegated,
  copyBlocks,
  copyMask,
  copyOperation,
  copyType,
  copyWords
};
constexpr uint32_t kNoneGiven = ~0u;

void runBarrier(Warp& warp, const Instr& instr, uint32_t mask);
// Sets the predicate. Returns the lanes whose phase has ended.
uint32_t testPhase(Warp& warp, const Instr& instr, uint32_t mask);
void copySmall(Warp& warp, const Instr& instr, uint32_t mask);    // cp.async: at most 16 bytes per lane
void copyBulk(Warp& warp, const Instr& instr, uint32_t mask);     // cp.async.bulk and cp.reduce.async.bulk
void storeRemote(Warp& warp, const Instr& instr, uint32_t mask);  // st.async and red.async

}  // namespace shoal::ptx
