#include "backing.h"

namespace shoal {

void UseCount::leave() {
  std::lock_guard lock(mutex_);
  if (count_.fetch_sub(1) == 1) changed_.notify_all();
}

void UseCount::waitUntilUnused() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return count_.load() == 0; });
}

}  // namespace shoal
