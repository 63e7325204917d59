// Finds the loop for a key in this build, which is for one kind of CPU.
#include "lanes.h"

namespace shoal::ptx::SHOAL_LANES {

#ifdef SHOAL_CHECK
// Memory instructions first.
Handler find(const Key& key) {
  if (Handler found = findMemory(key)) return found;
  if (Handler found = findAtomic(key)) return found;
  return findFragment(key);
}
#else
Handler find(const Key& key) {
  const bool isHalf =
      key.type == Type::f16 || key.type == Type::f16x2 || key.type == Type::bf16 || key.type == Type::bf16x2;
  const bool isReal = key.type == Type::f32 || key.type == Type::f64;
  if (Handler found = isHalf ? findHalf(key) : isReal ? findFloat(key) : findInteger(key)) return found;
  if (Handler found = findBits(key)) return found;
  if (Handler found = findCompare(key)) return found;
  if (Handler found = findConvert(key)) return found;
  if (Handler found = findMove(key)) return found;
  if (Handler found = findMemory(key)) return found;
  if (Handler found = findAtomic(key)) return found;
  if (Handler found = findMatrix(key)) return found;
  if (Handler found = findFragment(key)) return found;
  return findWarp(key);
}
#endif

}  // namespace shoal::ptx::SHOAL_LANES
