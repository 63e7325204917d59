// Device functions that the device itself provides: printf, malloc, free, assert, and functions for graphs.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "graph/conditional.h"
#include "graph/devicelaunch.h"
#include "decoder.h"
#include "heap.h"
#include "launch.h"

namespace shoal::ptx {

namespace {

constexpr size_t kMostText = 64 << 10;

class Memory {
 public:
  Memory(Warp& warp, int lane) : warp_(warp), lane_(lane) {}
  template <class T>
  T read(uint64_t address) {
    T value;
    memcpy(&value, at(address, sizeof value), sizeof value);
    return value;
  }
  std::string text(uint64_t address) {
    std::string out;
    while (out.size() < kMostText) {
      const char c = static_cast<char>(*at(address + out.size(), 1));
      if (c == '\0') break;
      out += c;
    }
    return out;
  }

 private:
  const uint8_t* at(uint64_t address, unsigned size) {
    if ((address & kWindowMask) != 0) return resolveWindow(warp_, lane_, address, size, false);
    if (address < range_.base || address + size > range_.end) resolveGlobal(warp_, range_, address, size, false);
    return reinterpret_cast<const uint8_t*>(address);
  }
  Warp& warp_;
  int lane_;
  Range range_;
};

// The maximum output of one printf call: the size of hardware's buffer for all calls.
constexpr size_t kMostPrinted = 1 << 20;

// Limits the widths in a conversion to the length that C guarantees (4095 characters). A width of billions would keep
// the thread busy past every time limit of the kernel.
std::string withLimits(const std::string& spec) {
  constexpr size_t kMostDigits = 4;
  constexpr const char* kMost = "4095";
  std::string out;
  for (size_t at = 0; at < spec.size();) {
    const size_t digit = spec.find_first_of("123456789", at), end = spec.find_first_not_of("0123456789", digit);
    out.append(spec, at, digit - at);
    if (digit == std::string::npos) break;
    const std::string number = spec.substr(digit, end - digit);
    out += number.size() > kMostDigits || (number.size() == kMostDigits && number > kMost) ? kMost : number;
    at = end;
  }
  return out;
}

template <class Value>
std::string print(const std::string& spec, Value value) {
  const int length = snprintf(nullptr, 0, spec.c_str(), value);
  std::string out(static_cast<size_t>(std::max(length, 0)) + 1, '\0');
  snprintf(out.data(), out.size(), spec.c_str(), value);
  out.pop_back();
  return out;
}

// The arguments follow one another, each at a multiple of its size.
std::string formatted(Memory& memory, uint64_t format, uint64_t arguments, int& count) {
  const std::string text = memory.text(format);
  std::string out;
  uint64_t at = arguments;
  auto next = [&](uint64_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    const uint64_t here = at;
    at += bytes;
    ++count;
    return here;
  };
  for (size_t index = 0; index < text.size() && out.size() < kMostPrinted; ++index) {
    if (text[index] != '%') {
      out += text[index];
      continue;
    }
    std::string spec = "%";
    size_t end = index + 1;
    bool isLong = false, isShort = false, isChar = false;
    for (; end < text.size() && strchr("-+ #0123456789.*hlLjztI", text[end]) != nullptr; ++end) {
      const char c = text[end];
      if (c == '*') {
        const int given = memory.read<int32_t>(next(4));
        // A negative precision counts as no precision.
        if (given < 0 && spec.back() == '.') spec.pop_back();
        else spec += std::to_string(given);
      } else if (strchr("lLjzt", c) != nullptr) {
        isLong = true;
      } else if (c == 'h') {
        isChar = isShort;
        isShort = true;
      } else {
        spec += c;
      }
    }
    if (end >= text.size()) break;
    const char kind = text[end];
    spec = withLimits(spec);
    switch (kind) {
      case '%': out += '%'; break;
      case 'd':
      case 'i': {
        int64_t value = isLong ? memory.read<int64_t>(next(8)) : memory.read<int32_t>(next(4));
        if (isChar) value = static_cast<int8_t>(value);
        else if (isShort) value = static_cast<int16_t>(value);
        out += print(spec + "lld", static_cast<long long>(value));
        break;
      }
      case 'u':
      case 'x':
      case 'X':
      case 'o': {
        uint64_t value = isLong ? memory.read<uint64_t>(next(8)) : memory.read<uint32_t>(next(4));
        if (isChar) value = static_cast<uint8_t>(value);
        else if (isShort) value = static_cast<uint16_t>(value);
        out += print(spec + "ll" + kind, static_cast<unsigned long long>(value));
        break;
      }
      case 'c': out += print(spec + 'c', memory.read<int32_t>(next(4))); break;
      case 'p': out += print(spec + 'p', reinterpret_cast<void*>(memory.read<uint64_t>(next(8)))); break;
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A': out += print(spec + kind, memory.read<double>(next(8))); break;
      case 's': {
        const uint64_t address = memory.read<uint64_t>(next(8));
        const std::string value = address == 0 ? "(null)" : memory.text(address);
        out += print(spec + 's', value.c_str());
        break;
      }
      default: out += text.substr(index, end - index + 1);
    }
    index = end;
  }
  if (out.size() > kMostPrinted) out.resize(kMostPrinted);
  return out;
}

}  // namespace

void Worker::callBuiltin(Warp& warp, const CallSite& site, uint32_t mask) {
  auto place = [&](const Passed& passed, int lane) -> uint8_t* {
    if (!passed.isRegister) {
      const uint64_t offset = uint64_t{warp.localBase} + passed.at;
      if (offset + passed.bytes > warp.localStride)
        throw Fault{CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack of a thread is full"};
      return warp.local + static_cast<size_t>(lane) * warp.localStride + offset;
    }
    if ((passed.at & kConstant) != 0)
      return const_cast<uint8_t*>(warp.constants) + (passed.at & ~kConstant) + static_cast<size_t>(lane) * passed.bytes;
    return warp.registers + passed.at + static_cast<size_t>(lane) * passed.bytes;
  };
  auto argument = [&](size_t index, int lane) {
    uint64_t value = 0;
    memcpy(&value, place(site.arguments[index], lane), std::min(site.arguments[index].bytes, 8u));
    return value;
  };
  for (; mask != 0; mask &= mask - 1) {
    const int lane = __builtin_ctz(mask);
    uint64_t result = 0;
    Memory memory(warp, lane);
    switch (static_cast<Builtin>(site.builtin)) {
      case Builtin::vprintf: {
        int count = 0;
        launch.print(formatted(memory, argument(0, lane), argument(1, lane), count));
        result = static_cast<uint64_t>(count);
        break;
      }
      case Builtin::malloc: result = launch.heap == nullptr ? 0 : launch.heap->allocate(argument(0, lane)); break;
      case Builtin::free: {
        const uint64_t address = argument(0, lane);
        if (address != 0 && (launch.heap == nullptr || !launch.heap->release(address)))
          throw Fault{CUDA_ERROR_ILLEGAL_ADDRESS, "free of memory that malloc did not give"};
        break;
      }
      case Builtin::setConditional:
        if (!setCondition(argument(0, lane), static_cast<unsigned>(argument(1, lane))))
          throw Fault{CUDA_ERROR_ILLEGAL_ADDRESS, "a conditional handle that no graph has"};
        break;
      // A kernel that launches graphs is refused outside of a graph.
      case Builtin::launchGraph: {
        const char* fault = nullptr;
        result = launch.graphRun == nullptr
                     ? 1
                     : launch.graphRun->launch(*launch.context, argument(0, lane), argument(1, lane), fault);
        if (fault != nullptr) throw Fault{CUDA_ERROR_ILLEGAL_ADDRESS, fault};
        break;
      }
      case Builtin::assertFail: {
        const Block& block = *warp.block;
        fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                memory.text(argument(1, lane)).c_str(), static_cast<unsigned>(argument(2, lane)),
                memory.text(argument(3, lane)).c_str(), block.x, block.y, block.z, warp.threadX[lane],
                warp.threadY[lane], warp.threadZ[lane], memory.text(argument(0, lane)).c_str());
        throw Fault{CUDA_ERROR_ASSERT, "an assertion"};
      }
    }
    if (!site.results.empty()) memcpy(place(site.results[0], lane), &result, std::min(site.results[0].bytes, 8u));
  }
}

}  // namespace shoal::ptx
