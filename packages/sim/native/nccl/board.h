// Where the ranks of a communicator find the memory in which they meet. Nothing here has a name in a file system: a process
// holds memory by a descriptor, others open it through /proc, and with the last process the memory is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace shoal::nccl {

// The memory that was made for a key: a descriptor of a process.
struct Meeting {
  uint64_t key;  // 0: unused
  int32_t process;
  int32_t descriptor;
};

constexpr size_t kMeetings = 256;
constexpr size_t kBoardBytes = kMeetings * sizeof(Meeting);

// How another process opens a board.
struct BoardAddress {
  int32_t process;
  int32_t descriptor;
  uint64_t name;
};

class Board {
 public:
  // The board of this process, made at the first call. Null with a reason when that fails.
  static std::shared_ptr<Board> own(BoardAddress& address, std::string& problem);
  // The board of a process that may have ended, which is a reason too.
  static std::shared_ptr<Board> at(const BoardAddress& address, std::string& problem);
  // A board inside other memory. `lockDescriptor` is a file that its processes have in common, -1 within one process.
  Board(std::shared_ptr<char> memory, Meeting* meetings, int lockDescriptor, bool ownsDescriptor);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // A descriptor of the memory of that key, which whoever comes first makes; it has at least `bytes`. -1 with a reason.
  int open(uint64_t key, size_t bytes, std::string& problem);
  // The key is not needed any more: all who wanted to have come.
  void forget(uint64_t key);

 private:
  class Lock;
  const std::shared_ptr<char> memory_;
  Meeting* const meetings_;
  const int descriptor_;
  const bool ownsDescriptor_;
};

uint64_t randomNumber();

}  // namespace shoal::nccl
