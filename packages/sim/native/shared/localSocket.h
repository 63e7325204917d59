// Unix sockets between processes of one user. Their names are outside of the file system and go with the process.
#pragma once

#include <functional>
#include <string>

namespace shoal {

// What a name that nobody guesses is made of.
struct RandomBytes {
  unsigned char bytes[16];
};
// Throws std::system_error.
RandomBytes randomBytes();
// The prefix, and the bytes as hexadecimal digits.
std::string nameOf(const char* prefix, const RandomBytes& random);

// What a descriptor of these sockets says waits no longer than a few seconds. -1, with errno, where there is none.
int listenAt(const std::string& name, int backlog);
// Connected to a process of the same user, or -1.
int connectTo(const std::string& name);
// Whether somebody listens there. Whoever cannot ask takes the other for alive.
bool isListening(const std::string& name);

// Answers, on a thread of this name, each connection of a process of the same user, as long as this process lives.
// False when no thread can be made: then `listening` is closed, and errno says why.
bool serve(int listening, const char* threadName, std::function<void(int connection)> answer);

}  // namespace shoal
