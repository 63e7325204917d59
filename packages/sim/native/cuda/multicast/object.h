// A multicast object: a team of devices, and memory of each of them that one write reaches. What it is made of lies in
// shared memory, so that every process that imported it sees the same team and the same bound memory.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/sharedfile.h"
#include "shoal/cuda.h"

namespace shoal {

class MulticastObject {
 public:
  static std::shared_ptr<MulticastObject> create(const CUmulticastObjectProp& properties);
  // The same object for one that this process knows already.
  static CUresult open(std::shared_ptr<SharedFile> file, std::shared_ptr<MulticastObject>& object);
  explicit MulticastObject(std::shared_ptr<SharedFile> file);
  ~MulticastObject();
  MulticastObject(const MulticastObject&) = delete;
  MulticastObject& operator=(const MulticastObject&) = delete;

  size_t size() const;
  unsigned handleTypes() const;
  const std::shared_ptr<SharedFile>& file() const { return file_; }
  // From now on other processes may add devices.
  void markShared();
  bool hasDevice(int device) const;
  CUresult addDevice(int device);
  // Until the team is complete. When nobody else can complete it, or does not in time: CUDA_ERROR_ILLEGAL_STATE.
  CUresult waitForTeam() const;

  struct Memory {
    int device;
    std::shared_ptr<SharedFile> file;
    size_t offset;
    std::shared_ptr<const void> owner;  // keeps the memory while it is bound
  };
  CUresult bind(size_t offset, size_t size, Memory memory);
  CUresult unbind(int device, size_t offset, size_t size);

  // Writes to all memory that is bound there. What a process that has ended had bound is left out.
  bool pass(size_t offset, const char* data, size_t length);

 private:
  struct Shared;
  struct Binding;
  class Lock;
  std::shared_ptr<SharedFile> fileOf(const Binding& binding);
  void forgetUnbound(const std::vector<uint64_t>& bound);

  const std::shared_ptr<SharedFile> file_;
  Shared* shared_;
  std::mutex mutex_;                // guards what follows
  std::map<uint64_t, Memory> own_;  // bound by this process, by the number of the binding
  struct Fetched {
    std::shared_ptr<SharedFile> file;
    std::chrono::steady_clock::time_point seenAlive;
  };
  std::map<uint64_t, Fetched> fetched_;  // bound by others
};

}  // namespace shoal
