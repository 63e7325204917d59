// Passes descriptors between PEs, through a socket without a file. Nothing is left when its process ends.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace shoal::nvshmem {

class Exchange {
 public:
  // Serves requests under `name` until the process ends. Returns false and a reason if the name is taken or no thread
  // can be started.
  bool listen(const std::string& name, std::string& problem);
  const std::string& name() const { return name_; }

  // Serves the descriptor to all PEs that ask for the key. The caller keeps its descriptor.
  uint64_t offer(int descriptor);
  void offerAs(uint64_t key, int descriptor);
  void withdraw(uint64_t key);

  // Fetches a descriptor of another process. Returns -1 if no process serves the name or the key.
  static int fetch(const std::string& name, uint64_t key);
  // Asks the process under `name` to exit with a status.
  static void askToExit(const std::string& name, int status);

 private:
  void answer(int connection);

  std::string name_;
  std::mutex mutex_;
  std::map<uint64_t, int> offered_;
  uint64_t next_ = 1;
};

}  // namespace shoal::nvshmem
