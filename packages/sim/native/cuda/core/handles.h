// Handles are numbers that are never reused, and each lookup goes through a table. A stale or foreign handle is always
// detected.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace shoal {

// The interface for the leak check. Tables are never destroyed.
class CountedTable {
 public:
  // No name means that the leak check skips the table: the driver owns its objects, or the program cannot free them.
  explicit CountedTable(const char* name);
  virtual size_t count() const = 0;
  const char* const name;

 protected:
  ~CountedTable() = default;
};

template <class Object>
class HandleTable final : public CountedTable {
 public:
  // `kind` separates the handles of different tables, so that a handle of another kind is not found.
  explicit HandleTable(uint64_t kind, const char* name = nullptr) : CountedTable(name), next_((kind << 44) + 0x1000) {}

  size_t count() const override {
    std::shared_lock lock(mutex_);
    return objects_.size();
  }

  uint64_t reserve() { return next_.fetch_add(16); }

  void put(uint64_t handle, std::shared_ptr<Object> object) {
    std::unique_lock lock(mutex_);
    objects_[handle] = std::move(object);
  }

  std::shared_ptr<Object> find(uint64_t handle) const {
    std::shared_lock lock(mutex_);
    auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  template <class Handle>
  std::shared_ptr<Object> find(Handle* handle) const {
    return find(reinterpret_cast<uint64_t>(handle));
  }

  std::shared_ptr<Object> take(uint64_t handle) {
    std::unique_lock lock(mutex_);
    auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  template <class Is>
  void takeIf(Is&& is) {
    std::vector<std::shared_ptr<Object>> taken;  // destroyed after the lock is released
    std::unique_lock lock(mutex_);
    for (auto at = objects_.begin(); at != objects_.end();) {
      if (!is(*at->second)) {
        ++at;
        continue;
      }
      taken.push_back(std::move(at->second));
      at = objects_.erase(at);
    }
    lock.unlock();
  }

  std::vector<std::shared_ptr<Object>> all() const {
    std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<Object>> list;
    list.reserve(objects_.size());
    for (auto& entry : objects_) list.push_back(entry.second);
    return list;
  }

 private:
  std::atomic<uint64_t> next_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<Object>> objects_;
};

}  // namespace shoal
