#include "descriptors.h"

#ifndef _WIN32
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#endif

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "environment.h"

namespace shoal {
#ifndef _WIN32
namespace {

constexpr int kNotReady = 600;  // CUDA_ERROR_NOT_READY, so that one waiter serves descriptors and CUDA
constexpr size_t kMostDescriptors = 64;

int Ready(uint64_t descriptor, short events) {
  pollfd entry{static_cast<int>(descriptor), events, 0};
  const int count = poll(&entry, 1, 0);
  return count == 0 || (count < 0 && errno == EINTR) ? kNotReady : 0;
}

// The waiter thread calls these as int query(descriptor).
int ReadyToRead(uint64_t descriptor) { return Ready(descriptor, POLLIN); }
int ReadyToWrite(uint64_t descriptor) { return Ready(descriptor, POLLOUT); }

Napi::Number Code(Napi::Env env, int error) { return Napi::Number::New(env, -error); }

bool MakeOurs(int descriptor) {
  return fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 &&
         fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0;
}

// A name that starts with NUL belongs to Linux's abstract namespace and has no file. Returns false if it is too long.
bool Address(const std::string& path, sockaddr_un* address, socklen_t* length) {
  std::memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (path.size() >= sizeof address->sun_path) return false;
  std::memcpy(address->sun_path, path.data(), path.size());
  const bool is_abstract = !path.empty() && path[0] == '\0';
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (is_abstract ? 0 : 1));
  return true;
}

// socketPair(): [descriptor, descriptor], or minus errno.
Napi::Value SocketPair(const Napi::CallbackInfo& info) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return Code(info.Env(), errno);
  for (int end : ends) MakeOurs(end);
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  result[0u] = Napi::Number::New(info.Env(), ends[0]);
  result[1u] = Napi::Number::New(info.Env(), ends[1]);
  return result;
}

// openSocket(path, listen): a descriptor, or minus errno.
Napi::Value OpenSocket(const Napi::CallbackInfo& info) {
  sockaddr_un address;
  socklen_t length = 0;
  if (!Address(info[0].As<Napi::String>().Utf8Value(), &address, &length)) return Code(info.Env(), ENAMETOOLONG);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  if (descriptor < 0) return Code(info.Env(), errno);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  const bool listens = info[1].As<Napi::Boolean>();
  const bool done =
      MakeOurs(descriptor) && (listens ? bind(descriptor, name, length) == 0 && listen(descriptor, 64) == 0
                                       : connect(descriptor, name, length) == 0);
  if (done) return Napi::Number::New(info.Env(), descriptor);
  const int error = errno;
  close(descriptor);
  return Code(info.Env(), error);
}

// acceptSocket(descriptor): a descriptor, or minus errno.
Napi::Value AcceptSocket(const Napi::CallbackInfo& info) {
  const int descriptor = accept(info[0].As<Napi::Number>().Int32Value(), nullptr, nullptr);
  if (descriptor < 0) return Code(info.Env(), errno);
  MakeOurs(descriptor);
  return Napi::Number::New(info.Env(), descriptor);
}

// adoptSocket(descriptor): 0, or minus errno if the descriptor is not a Unix stream socket.
Napi::Value AdoptSocket(const Napi::CallbackInfo& info) {
  const int descriptor = info[0].As<Napi::Number>().Int32Value();
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &length) != 0) return Code(info.Env(), errno);
  if (name.ss_family != AF_UNIX) return Code(info.Env(), EPROTOTYPE);
  return MakeOurs(descriptor) ? Code(info.Env(), 0) : Code(info.Env(), errno);
}

// peerUser(descriptor): the user id of the peer process at the time it connected, listened or made the pair; or minus
// errno.
Napi::Value PeerUser(const Napi::CallbackInfo& info) {
  const int descriptor = info[0].As<Napi::Number>().Int32Value();
#ifdef SO_PEERCRED
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return Code(info.Env(), errno);
  return Napi::Number::New(info.Env(), peer.uid);
#else
  uid_t user = 0;
  gid_t group = 0;
  if (getpeereid(descriptor, &user, &group) != 0) return Code(info.Env(), errno);
  return Napi::Number::New(info.Env(), user);
#endif
}

// isHungUp(descriptor): true if a pipe has no reader any more, or if the peer has closed its socket.
Napi::Value IsHungUp(const Napi::CallbackInfo& info) {
  pollfd entry{info[0].As<Napi::Number>().Int32Value(), 0, 0};
  return Napi::Boolean::New(info.Env(), poll(&entry, 1, 0) > 0 && (entry.revents & (POLLERR | POLLHUP)) != 0);
}

// sendSocket(descriptor, bytes, descriptors): the number of bytes sent, or minus errno.
Napi::Value SendSocket(const Napi::CallbackInfo& info) {
  auto bytes = info[1].As<Napi::Uint8Array>();
  auto list = info[2].As<Napi::Array>();
  const size_t count = list.Length();
  if (count > kMostDescriptors) return Code(info.Env(), E2BIG);
  std::vector<int> descriptors(count);
  for (uint32_t i = 0; i < count; ++i) descriptors[i] = list.Get(i).As<Napi::Number>().Int32Value();
  iovec part{bytes.Data(), bytes.ByteLength()};
  std::vector<char> control(CMSG_SPACE(sizeof(int) * (count == 0 ? 1 : count)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * count);
    std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * count);
  }
  const ssize_t sent = sendmsg(info[0].As<Napi::Number>().Int32Value(), &message, MSG_NOSIGNAL);
  return sent < 0 ? Code(info.Env(), errno) : Napi::Number::New(info.Env(), static_cast<double>(sent));
}

// receiveSocket(descriptor, bytes, descriptors): the number of bytes received, or minus errno. Received descriptors are
// appended to the array.
Napi::Value ReceiveSocket(const Napi::CallbackInfo& info) {
  auto bytes = info[1].As<Napi::Uint8Array>();
  auto list = info[2].As<Napi::Array>();
  iovec part{bytes.Data(), bytes.ByteLength()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
#ifdef MSG_CMSG_CLOEXEC
  constexpr int flags = MSG_CMSG_CLOEXEC;
#else
  constexpr int flags = 0;
#endif
  const ssize_t received = recvmsg(info[0].As<Napi::Number>().Int32Value(), &message, flags);
  if (received < 0) return Code(info.Env(), errno);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      list.Set(list.Length(), Napi::Number::New(info.Env(), descriptor));
    }
  }
  return Napi::Number::New(info.Env(), static_cast<double>(received));
}

// closeDescriptor(descriptor): 0, or minus errno. Replaces fs.close, because Node warns if a worker closes a descriptor
// that it did not open.
Napi::Value CloseDescriptor(const Napi::CallbackInfo& info) {
  return Code(info.Env(), close(info[0].As<Napi::Number>().Int32Value()) == 0 ? 0 : errno);
}

// closeAtEnd(descriptor, isWanted): sets whether the descriptor is closed when this thread ends.
void CloseAtEnd(const Napi::CallbackInfo& info) {
  auto& descriptors = Environment::Of(info.Env()).descriptors;
  const int descriptor = info[0].As<Napi::Number>().Int32Value();
  if (info[1].As<Napi::Boolean>()) descriptors.insert(descriptor);
  else descriptors.erase(descriptor);
}

// descriptorKind(descriptor): the kind of file, or minus errno. Deno's fs.fstat only knows descriptors that Deno
// opened.
Napi::Value DescriptorKind(const Napi::CallbackInfo& info) {
  struct stat status{};
  if (fstat(info[0].As<Napi::Number>().Int32Value(), &status) != 0) return Code(info.Env(), errno);
  const mode_t mode = status.st_mode;
  const int kind = S_ISREG(mode) ? 1 : S_ISDIR(mode) ? 2 : S_ISSOCK(mode) ? 3 : S_ISFIFO(mode) ? 4 : 0;
  return Napi::Number::New(info.Env(), kind);
}

// duplicateDescriptor(descriptor): a new descriptor of the same file, or minus errno.
Napi::Value DuplicateDescriptor(const Napi::CallbackInfo& info) {
  const int descriptor = fcntl(info[0].As<Napi::Number>().Int32Value(), F_DUPFD_CLOEXEC, 0);
  return descriptor < 0 ? Code(info.Env(), errno) : Napi::Number::New(info.Env(), descriptor);
}

Napi::BigInt AddressOf(Napi::Env env, int (*query)(uint64_t)) {
  return Napi::BigInt::New(env, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(query)));
}

}  // namespace

void DefineDescriptors(Napi::Env env, Napi::Object exports) {
  exports.Set("socketPair", Napi::Function::New(env, SocketPair, "socketPair"));
  exports.Set("openSocket", Napi::Function::New(env, OpenSocket, "openSocket"));
  exports.Set("acceptSocket", Napi::Function::New(env, AcceptSocket, "acceptSocket"));
  exports.Set("adoptSocket", Napi::Function::New(env, AdoptSocket, "adoptSocket"));
  exports.Set("peerUser", Napi::Function::New(env, PeerUser, "peerUser"));
  exports.Set("isHungUp", Napi::Function::New(env, IsHungUp, "isHungUp"));
  exports.Set("sendSocket", Napi::Function::New(env, SendSocket, "sendSocket"));
  exports.Set("receiveSocket", Napi::Function::New(env, ReceiveSocket, "receiveSocket"));
  exports.Set("closeDescriptor", Napi::Function::New(env, CloseDescriptor, "closeDescriptor"));
  exports.Set("closeAtEnd", Napi::Function::New(env, CloseAtEnd, "closeAtEnd"));
  exports.Set("descriptorKind", Napi::Function::New(env, DescriptorKind, "descriptorKind"));
  exports.Set("duplicateDescriptor", Napi::Function::New(env, DuplicateDescriptor, "duplicateDescriptor"));
  exports.Set("readyToReadAddress", AddressOf(env, ReadyToRead));
  exports.Set("readyToWriteAddress", AddressOf(env, ReadyToWrite));
}

void CloseDescriptors(Environment& environment) {
  for (int descriptor : environment.descriptors) close(descriptor);
}
#else
void DefineDescriptors(Napi::Env, Napi::Object) {}
void CloseDescriptors(Environment&) {}
#endif

}  // namespace shoal
