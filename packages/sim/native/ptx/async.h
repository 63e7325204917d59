// Barriers in shared memory that count arrivals and bytes, and copies that tell them of their end.
#pragma once

#include "machine.h"

namespace shoal::ptx {

// Instr.extra of mbarrier: to = what comes out or none, a = the address, b = the operand or none.
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

// An address among warp.operands: its operand, what is added to it, and whether it has 64 bits. Those of shared memory
// become generic.
enum AddressWord : unsigned {
  addressOperand,
  addressOffset,
  addressIsWide,
  addressIsShared,
  addressIsFrame,
  addressWords
};

// Words of a copy: its addresses, then these. An operand that is not there is kNoneGiven.
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
// Sets the predicate; the lanes whose phase has ended.
uint32_t testPhase(Warp& warp, const Instr& instr, uint32_t mask);
void copySmall(Warp& warp, const Instr& instr, uint32_t mask);    // cp.async: at most 16 bytes for each lane
void copyBulk(Warp& warp, const Instr& instr, uint32_t mask);     // cp.async.bulk and cp.reduce.async.bulk
void storeRemote(Warp& warp, const Instr& instr, uint32_t mask);  // st.async and red.async

}  // namespace shoal::ptx
