// How PEs hand each other descriptors: a socket that has no file, so nothing is left behind when its process ends.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace shoal::nvshmem {

class Exchange {
 public:
  // Answers under `name` until the process ends. False, with the reason in `problem`, when the name is taken or there
  // is no thread.
  bool listen(const std::string& name, std::string& problem);
  const std::string& name() const { return name_; }

  // Gives the descriptor, which stays the caller's, to all who ask for the key.
  uint64_t offer(int descriptor);
  void offerAs(uint64_t key, int descriptor);
  void withdraw(uint64_t key);

  // Of another process. -1 when nobody answers under the name, or nothing is offered under the key.
  static int fetch(const std::string& name, uint64_t key);
  // Asks the process under `name` to end with a status.
  static void askToExit(const std::string& name, int status);

 private:
  void answer(int connection);

  std::string name_;
  std::mutex mutex_;
  std::map<uint64_t, int> offered_;
  uint64_t next_ = 1;
};

}  // namespace shoal::nvshmem
