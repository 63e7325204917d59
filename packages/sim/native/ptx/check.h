// The checks of SHOAL_SIM_CHECK=1 while a kernel runs: reads of unwritten memory, races in shared memory, and barriers
// that not all threads of a block reach.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine.h"

namespace shoal::ptx {

struct Cluster;
class Launch;

// Checks one cluster at a time. An access is identified by its thread and its time. Time advances with each
// synchronisation.
class Checker {
 public:
  Checker(Launch& launch, Cluster& cluster);
  void start();
  // Throws a Fault for a wrong access.
  void access(Warp& warp, const Instr& instr, int lane, const uint8_t* at, unsigned size, bool isWrite);
  void fence(Warp& warp, uint32_t mask);
  void meetInWarp(Warp& warp, uint32_t members, uint32_t mask);
  // Called when a barrier is complete, with the threads that arrived and those of them that wait.
  void meetInBlock(Block& block, unsigned number);
  void meetInCluster();
  // Throws the Fault of two racing writes if their values differ.
  void settle();
  // For an arrival at an mbarrier, and for the end of its phase.
  void arrive(Warp& warp, int lane, const uint8_t* at);
  void await(Warp& warp, int lane, const uint8_t* at);

 private:
  static constexpr uint16_t kNobody = 0xffff;
  struct Access {
    uint32_t time = 0, pc = 0;
    uint16_t thread = kNobody;
    bool isStrong = false;
  };
  struct Byte {
    Access write, read, otherRead;
    bool isWritten = false;
  };
  using Times = std::vector<uint32_t>;  // per thread of a block: accesses up to this time are ordered before
  struct OfBlock {
    std::vector<Byte> bytes;
    uint32_t met = 0;  // the time when all its threads last met
    std::vector<Times> known;
    std::vector<Times> seen;  // becomes ordered at an acquiring fence
    std::vector<uint32_t> fenced;
    std::unordered_map<const uint8_t*, Times> released;
    bool hasAcquired = false;
  };

  bool isOrdered(const Access& before, uint16_t thread) const;
  bool isRace(const Access& before, uint16_t thread, bool isStrong) const;
  std::string raceOf(const Access& before, const char* how, size_t at, bool isWrite) const;
  void synchronise(OfBlock& block, uint32_t thread, const uint8_t* at, uint8_t order, bool isWrite);
  std::string placeOf(const Access& access) const;
  Times& timesOf(OfBlock& block, uint32_t thread);
  static void join(Times& to, const Times& from);

  Launch& launch_;
  Cluster& cluster_;
  const uint32_t threads_;
  std::vector<OfBlock> blocks_;
  uint32_t now_ = 1;
  uint32_t met_ = 0;
  // Bytes that two threads write, with the value of the first write. Writing equal values is common and intended.
  struct Rewritten {
    const uint8_t* at;
    uint8_t before;
  };
  std::vector<Rewritten> rewritten_;
  std::string rewriting_;
};

}  // namespace shoal::ptx
