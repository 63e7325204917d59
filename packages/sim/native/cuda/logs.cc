// The driver's log: errors with more detail than their code.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>

#include "core/entry.h"
#include "core/report.h"

using namespace shoal;

namespace {

// As on hardware, old entries make room for new ones.
constexpr size_t kMostEntries = 100;

struct Listener {
  CUlogsCallback call;
  void* data;
};

struct Log {
  std::mutex mutex;
  std::deque<std::string> entries;
  uint64_t forgotten = 0;  // number of entries before the first one that is kept
  uint64_t nextListener = 0x1000;
  std::map<uint64_t, Listener> listeners;
};

Log& log() {
  static auto* only = new Log;
  return *only;
}

// Returns whole entries from the iterator on. If not all fit, only the newest. Moves the iterator to the end.
std::string from(CUlogIterator* iterator, size_t room) {
  Log& all = log();
  std::lock_guard lock(all.mutex);
  const uint64_t end = all.forgotten + all.entries.size();
  uint64_t at = all.forgotten;
  // The iterator counts modulo 2^32.
  if (iterator != nullptr)
    at = end - std::min<uint64_t>(static_cast<CUlogIterator>(end) - *iterator, all.entries.size());
  size_t bytes = 0;
  uint64_t first = end;
  while (first > at && bytes + all.entries[first - 1 - all.forgotten].size() <= room)
    bytes += all.entries[--first - all.forgotten].size();
  std::string text;
  for (; first < end; ++first) text += all.entries[first - all.forgotten];
  if (iterator != nullptr) *iterator = static_cast<CUlogIterator>(end);
  return text;
}

}  // namespace

void shoal::logError(const std::string& message) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  char head[64];
  snprintf(head, sizeof head, "[%02d:%02d:%02d.%03ld][%d][CUDA][E] ", parts.tm_hour, parts.tm_min, parts.tm_sec,
           now.tv_nsec / 1000000, getpid());
  std::string line = head + message + "\n";
  Log& all = log();
  std::vector<Listener> listeners;
  {
    std::lock_guard lock(all.mutex);
    all.entries.push_back(line);
    if (all.entries.size() > kMostEntries) {
      all.entries.pop_front();
      ++all.forgotten;
    }
    for (auto& each : all.listeners) listeners.push_back(each.second);
  }
  for (const Listener& each : listeners) each.call(each.data, CU_LOG_LEVEL_ERROR, line.data(), line.size());
}

CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void* userData, CUlogsCallbackHandle* callback_out) {
  return anywhere([&]() -> CUresult {
    if (callbackFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Log& all = log();
    std::lock_guard lock(all.mutex);
    const uint64_t handle = all.nextListener++;
    all.listeners[handle] = {callbackFunc, userData};
    if (callback_out != nullptr) *callback_out = reinterpret_cast<CUlogsCallbackHandle>(handle);
    return CUDA_SUCCESS;
  });
}
CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback) {
  return anywhere([&] {
    Log& all = log();
    std::lock_guard lock(all.mutex);
    return all.listeners.erase(reinterpret_cast<uint64_t>(callback)) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuLogsCurrent(CUlogIterator* iterator_out, unsigned int flags) {
  return anywhere([&]() -> CUresult {
    if (iterator_out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    Log& all = log();
    std::lock_guard lock(all.mutex);
    *iterator_out = static_cast<CUlogIterator>(all.forgotten + all.entries.size());
    return CUDA_SUCCESS;
  });
}
CUresult cuLogsDumpToFile(CUlogIterator* iterator, const char* pathToFile, unsigned int flags) {
  return anywhere([&]() -> CUresult {
    if (pathToFile == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    FILE* file = fopen(pathToFile, "a");
    if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::string text = from(iterator, SIZE_MAX);
    const bool isWritten = fwrite(text.data(), 1, text.size(), file) == text.size();
    return fclose(file) == 0 && isWritten ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  });
}
CUresult cuLogsDumpToMemory(CUlogIterator* iterator, char* buffer, size_t* size, unsigned int flags) {
  return anywhere([&]() -> CUresult {
    if (buffer == nullptr || size == nullptr || *size == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::string text = from(iterator, *size - 1);
    memcpy(buffer, text.c_str(), text.size() + 1);
    *size = text.size();
    return CUDA_SUCCESS;
  });
}
