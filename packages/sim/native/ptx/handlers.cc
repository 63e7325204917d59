// Chooses the build of the lane loops for this CPU.
#include <cstdlib>
#include <cstring>

#include "machine.h"
#include "processor.h"

namespace shoal::ptx {

namespace base {
Handler find(const Key& key);
}
namespace check {
Handler find(const Key& key);
}
#if defined(__x86_64__)
namespace v3 {
Handler find(const Key& key);
}
namespace v4 {
Handler find(const Key& key);
}
#endif

Handler findHandler(const Key& key) {
  using Find = Handler (*)(const Key&);
  static const Find find = []() -> Find {
#if defined(__x86_64__)
    // Selects a build other than the best one, for tests.
    const char* named = getenv("SHOAL_SIM_LANES");
    if (named != nullptr && strcmp(named, "base") == 0) return base::find;
    const int level = levelOf(thisProcessor());
    if (level >= 4 && (named == nullptr || strcmp(named, "v3") != 0)) return v4::find;
    if (level >= 3) return v3::find;
#endif
    return base::find;
  }();
  if (isChecking()) {
    if (key.op == Op::fence) return runCheckedFence;
    if (Handler found = check::find(key)) return found;
  }
  return find(key);
}

}  // namespace shoal::ptx
