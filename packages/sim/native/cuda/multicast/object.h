// A multicast object: a team of devices, and memory of each device that one write reaches. Its state is in shared
// memory, so that every importing process sees the same team and the same bindings.
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
  // Returns the existing object if this process knows it already.
  static CUresult open(std::shared_ptr<SharedFile> file, std::shared_ptr<MulticastObject>& object);
  explicit MulticastObject(std::shared_ptr<SharedFile> file);
  ~MulticastObject();
  MulticastObject(const MulticastObject&) = delete;
  MulticastObject& operator=(const MulticastObject&) = delete;

  size_t size() const;
  unsigned handleTypes() const;
  const std::shared_ptr<SharedFile>& file() const { return file_; }
  // Other processes may add devices from now on.
  void markShared();
  bool hasDevice(int device) const;
  CUresult addDevice(int device);
  // Waits until the team is complete. Returns CUDA_ERROR_ILLEGAL_STATE if no other process can complete it, or on
  // timeout.
  CUresult waitForTeam() const;

  struct Memory {
    int device;
    std::shared_ptr<SharedFile> file;
    size_t offset;
    std::shared_ptr<const void> owner;  // keeps the memory alive while it is bound
  };
  CUresult bind(size_t offset, size_t size, Memory memory);
  CUresult unbind(int device, size_t offset, size_t size);

  // Writes to all memory that is bound there, except bindings of processes that have ended.
  bool pass(size_t offset, const char* data, size_t length);

 private:
  struct Shared;
  struct Binding;
  class Lock;
  std::shared_ptr<SharedFile> fileOf(const Binding& binding);
  void forgetUnbound(const std::vector<uint64_t>& bound);

  const std::shared_ptr<SharedFile> file_;
  Shared* shared_;
  std::mutex mutex_;                // guards the members below
  std::map<uint64_t, Memory> own_;  // bindings of this process, by number
  struct Fetched {
    std::shared_ptr<SharedFile> file;
    std::chrono::steady_clock::time_point seenAlive;
  };
  std::map<uint64_t, Fetched> fetched_;  // bindings of other processes
};

}  // namespace shoal
