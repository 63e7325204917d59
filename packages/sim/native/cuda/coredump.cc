// Core dumps: the settings of the process and of each context, and the text that is written when a context fails.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"
#include "core/report.h"

using namespace shoal;

namespace {

constexpr size_t kMostNameBytes = 1024;

struct Settings {
  std::map<int, bool> switches;
  std::map<int, std::string> names;
  std::map<int, unsigned> flags;
};

struct Store {
  std::mutex mutex;
  Settings process;
  std::map<const Context*, Settings> contexts;
};

Store& store() {
  static auto* only = new Store;
  return *only;
}

std::string defaultName(const char* kind) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return std::string(kind) + ".cuda." + host + "." + std::to_string(getpid());
}

bool isSwitch(int setting) {
  return setting >= CU_COREDUMP_ENABLE_ON_EXCEPTION && setting <= CU_COREDUMP_ENABLE_USER_TRIGGER;
}
bool isName(int setting) { return setting == CU_COREDUMP_FILE || setting == CU_COREDUMP_PIPE; }

// A context falls back to the setting of the process.
template <class Table, class Value>
Value lookUp(Table Settings::* table, int setting, const Settings* own, Value fallback) {
  for (const Settings* each : {own, static_cast<const Settings*>(&store().process)}) {
    if (each == nullptr) continue;
    const auto found = (each->*table).find(setting);
    if (found != (each->*table).end()) return found->second;
  }
  return fallback;
}

const Settings* settingsOf(const Context* context) {
  const auto found = store().contexts.find(context);
  return found == store().contexts.end() ? nullptr : &found->second;
}

CUresult read(const Context* context, int setting, void* value, size_t* size) {
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(store().mutex);
  const Settings* own = settingsOf(context);
  auto give = [&](const void* from, size_t bytes) {
    if (value != nullptr && *size < bytes) return CUDA_ERROR_INVALID_VALUE;
    if (value != nullptr) memcpy(value, from, bytes);
    *size = bytes;
    return CUDA_SUCCESS;
  };
  if (isSwitch(setting)) {
    const bool found = lookUp(&Settings::switches, setting, own, setting == CU_COREDUMP_TRIGGER_HOST);
    return give(&found, sizeof found);
  }
  if (isName(setting)) {
    const std::string found =
        lookUp(&Settings::names, setting, own, defaultName(setting == CU_COREDUMP_FILE ? "core" : "corepipe"));
    return give(found.c_str(), found.size() + 1);
  }
  if (setting != CU_COREDUMP_GENERATION_FLAGS) return CUDA_ERROR_INVALID_VALUE;
  const unsigned found = lookUp(&Settings::flags, setting, own, 0u);
  return give(&found, sizeof found);
}

CUresult write(const Context* context, int setting, const void* value, const size_t* size) {
  if (size == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // These settings exist only for the process.
  if (context != nullptr && (setting == CU_COREDUMP_ENABLE_USER_TRIGGER || setting == CU_COREDUMP_PIPE))
    return CUDA_ERROR_NOT_PERMITTED;
  std::lock_guard lock(store().mutex);
  Settings& to = context == nullptr ? store().process : store().contexts[context];
  if (isSwitch(setting)) {
    if (*size != sizeof(bool)) return CUDA_ERROR_INVALID_VALUE;
    to.switches[setting] = *static_cast<const uint8_t*>(value) != 0;
  } else if (isName(setting)) {
    if (*size == 0 || *size > kMostNameBytes) return CUDA_ERROR_INVALID_VALUE;
    to.names[setting] = std::string(static_cast<const char*>(value), strnlen(static_cast<const char*>(value), *size));
  } else if (setting == CU_COREDUMP_GENERATION_FLAGS) {
    if (*size != sizeof(unsigned)) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&to.flags[setting], value, sizeof(unsigned));
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

void forget(const Context& context) {
  std::lock_guard lock(store().mutex);
  store().contexts.erase(&context);
}
[[maybe_unused]] const bool isWatching = (Context::whenDestroyed(forget), true);

}  // namespace

// The software device has no registers to dump. The dump is text that says what failed and where.
void shoal::reportFailure(const Context& context, CUresult result) {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  const std::string message = std::string(name == nullptr ? "?" : name) + " on device " +
                              std::to_string(context.device.ordinal) + ": " + (text == nullptr ? "?" : text);
  logError(message);
  std::string file;
  {
    std::lock_guard lock(store().mutex);
    const Settings* own = settingsOf(&context);
    if (!lookUp(&Settings::switches, CU_COREDUMP_ENABLE_ON_EXCEPTION, own, false)) return;
    file = lookUp(&Settings::names, CU_COREDUMP_FILE, own, defaultName("core"));
  }
  FILE* to = fopen(file.c_str(), "w");
  if (to == nullptr) return;
  fprintf(to, "Shoal software device core dump\nprocess %d\n%s\n", getpid(), message.c_str());
  fclose(to);
}

CUresult cuCoredumpGetAttribute(CUcoredumpSettings attrib, void* value, size_t* size) {
  return inAnyContext([&](auto& context) { return read(context.get(), attrib, value, size); });
}
CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void* value, size_t* size) {
  return initialised([&] { return read(nullptr, attrib, value, size); });
}
CUresult cuCoredumpSetAttribute(CUcoredumpSettings attrib, void* value, size_t* size) {
  return inContext([&](auto& context) { return write(context.get(), attrib, value, size); });
}
CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void* value, size_t* size) {
  return initialised([&] { return write(nullptr, attrib, value, size); });
}
