#include "module/compression.h"

#include <dlfcn.h>

#include <memory>
#include <new>

namespace shoal {

namespace {

struct Zstd {
  size_t (*decompress)(void* to, size_t room, const void* from, size_t size) = nullptr;
  unsigned (*isError)(size_t code) = nullptr;
};

// The system's libzstd, loaded when it is first needed.
const Zstd& zstd() {
  static const Zstd found = [] {
    Zstd functions;
    void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return functions;
    functions.decompress = reinterpret_cast<decltype(functions.decompress)>(dlsym(library, "ZSTD_decompress"));
    functions.isError = reinterpret_cast<decltype(functions.isError)>(dlsym(library, "ZSTD_isError"));
    return functions;
  }();
  return found;
}

}  // namespace

bool unpackLz4(const uint8_t* from, size_t size, std::string& to, size_t most) {
  size_t at = 0;
  auto length = [&](size_t start) {
    size_t total = start;
    if (start != 15) return total;
    uint8_t more = 255;
    while (more == 255 && at < size) total += more = from[at++];
    return total;
  };
  while (at < size) {
    const uint8_t token = from[at++];
    const size_t literals = length(token >> 4);
    if (literals > size - at || to.size() + literals > most) return false;
    to.append(reinterpret_cast<const char*>(from + at), literals);
    at += literals;
    if (at >= size) return true;
    if (size - at < 2) return false;
    const size_t distance = static_cast<size_t>(from[at] | from[at + 1] << 8);
    at += 2;
    const size_t matched = length(token & 15) + 4;
    if (distance == 0 || distance > to.size() || to.size() + matched > most) return false;
    for (size_t index = 0; index < matched; ++index) to += to[to.size() - distance];
  }
  return true;
}

bool hasZstd() { return zstd().decompress != nullptr && zstd().isError != nullptr; }

bool unpackZstd(const uint8_t* from, size_t size, std::string& to, size_t most) {
  // The buffer is not zeroed, so that a false size in a header takes no memory until bytes are written.
  const std::unique_ptr<char[]> whole(new (std::nothrow) char[most]);
  if (whole == nullptr) return false;
  const size_t written = zstd().decompress(whole.get(), most, from, size);
  if (zstd().isError(written) != 0) return false;
  to.assign(whole.get(), written);
  return true;
}

}  // namespace shoal
