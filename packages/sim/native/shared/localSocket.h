// Unix sockets between processes of one user. Their names are not in the file system, and disappear with the process.
#pragma once

#include <functional>
#include <string>

namespace shoal {

// The random part of a name that cannot be guessed.
struct RandomBytes {
  unsigned char bytes[16];
};
// Throws std::system_error.
RandomBytes randomBytes();
// The prefix, followed by the bytes as hexadecimal digits.
std::string nameOf(const char* prefix, const RandomBytes& random);

// Reads and writes on these sockets time out after a few seconds. Returns -1 and sets errno on failure.
int listenAt(const std::string& name, int backlog);
// Connects to a process of the same user, or returns -1.
int connectTo(const std::string& name);
// True if a process listens under the name. If that cannot be checked, true as well.
bool isListening(const std::string& name);

// Calls `answer` for each connection of the same user, on a thread with this name, as long as the process lives. If no
// thread can be started, closes `listening`, sets errno and returns false.
bool serve(int listening, const char* threadName, std::function<void(int connection)> answer);

}  // namespace shoal
