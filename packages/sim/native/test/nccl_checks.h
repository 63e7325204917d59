// Checks the collectives against references in double (for floats) or in exact modular arithmetic (for integers).
// Inputs come from seeds, so every rank can compute all inputs, and therefore its expected output, by itself.
#pragma once

#include <algorithm>
#include <random>

#include "check.h"
#include "shoal/nccl.h"

namespace check {

#define NCCL(call) check::nccl(__FILE__, __LINE__, #call, call)
inline void nccl(const char* file, int line, const char* text, ncclResult_t result) {
  if (result == ncclSuccess) return;
  fail(file, line, std::string(text) + ": " + std::to_string(result) + " (" + ncclGetLastError(nullptr) + ")");
}

struct Rank {
  ncclComm_t comm;
  CUstream stream;
  int rank, ranks;
};

constexpr size_t kBytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
inline bool isFloat(int type) { return type >= ncclFloat16; }

// ---- a second, slow implementation of the narrow floats, from their definition

struct Format {
  int exponentBits, mantissaBits, bias;
  bool hasInfinity;
};
inline Format formatOf(int type) {
  switch (type) {
    case ncclFloat16: return {5, 10, 15, true};
    case ncclBfloat16: return {8, 7, 127, true};
    case ncclFloat8e4m3: return {4, 3, 7, false};
    default: return {5, 2, 15, true};
  }
}
inline double decodeNarrow(const Format& format, unsigned bits) {
  const unsigned mantissa = bits & ((1u << format.mantissaBits) - 1);
  const unsigned exponent = bits >> format.mantissaBits & ((1u << format.exponentBits) - 1);
  const double sign = bits >> (format.mantissaBits + format.exponentBits) & 1 ? -1 : 1;
  const unsigned top = (1u << format.exponentBits) - 1;
  if (exponent == top && format.hasInfinity) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == top && mantissa == (1u << format.mantissaBits) - 1) return NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - format.bias - format.mantissaBits);
  return sign * std::ldexp((1u << format.mantissaBits) + mantissa,
                           static_cast<int>(exponent) - format.bias - format.mantissaBits);
}
// The codes of a format's positive numbers are in numeric order, so the difference of two codes counts the numbers
// between them.
inline int orderOf(const Format& format, unsigned bits) {
  const unsigned sign = 1u << (format.mantissaBits + format.exponentBits);
  return bits & sign ? -static_cast<int>(bits & (sign - 1)) : static_cast<int>(bits);
}

inline double decode(int type, const void* at) {
  switch (type) {
    case ncclFloat32: {
      float value;
      memcpy(&value, at, 4);
      return value;
    }
    case ncclFloat64: {
      double value;
      memcpy(&value, at, 8);
      return value;
    }
    case ncclFloat16:
    case ncclBfloat16: {
      uint16_t bits;
      memcpy(&bits, at, 2);
      return decodeNarrow(formatOf(type), bits);
    }
    default: return decodeNarrow(formatOf(type), *static_cast<const uint8_t*>(at));
  }
}
inline uint64_t integer(int type, const void* at) {
  switch (type) {
    case ncclInt8: return static_cast<uint64_t>(static_cast<int64_t>(*static_cast<const int8_t*>(at)));
    case ncclUint8: return *static_cast<const uint8_t*>(at);
    case ncclInt32: {
      int32_t value;
      memcpy(&value, at, 4);
      return static_cast<uint64_t>(static_cast<int64_t>(value));
    }
    case ncclUint32: {
      uint32_t value;
      memcpy(&value, at, 4);
      return value;
    }
    default: {
      uint64_t value;
      memcpy(&value, at, 8);
      return value;
    }
  }
}
inline bool isSigned(int type) { return type == ncclInt8 || type == ncclInt32 || type == ncclInt64; }

// The input of one rank in one case.
inline std::vector<char> input(int type, size_t count, int rank, unsigned seed) {
  // A fast generator, because most inputs have only a few elements.
  std::minstd_rand random(seed * 1000003u + static_cast<unsigned>(rank) * 7919u + static_cast<unsigned>(type));
  std::vector<char> data(count * kBytes[type] + 1);
  std::uniform_real_distribution<double> spread(-2, 2);
  for (size_t index = 0; index < count; ++index) {
    char* at = &data[index * kBytes[type]];
    if (type == ncclFloat32) {
      const float value = static_cast<float>(spread(random));
      memcpy(at, &value, 4);
    } else if (type == ncclFloat64) {
      const double value = spread(random);
      memcpy(at, &value, 8);
    } else if (isFloat(type)) {
      unsigned bits = 0;
      const unsigned codes = 1u << (8 * kBytes[type]);
      do bits = random() % codes;
      while (!(std::fabs(decodeNarrow(formatOf(type), bits)) <= 8));
      memcpy(at, &bits, kBytes[type]);
    } else {
      for (size_t byte = 0; byte < kBytes[type]; ++byte) at[byte] = static_cast<char>(random());
    }
  }
  data.resize(count * kBytes[type]);
  return data;
}

// Checks one element of a reduction over all ranks.
inline void checkElement(int type, int op, const std::vector<std::vector<char>>& inputs, size_t at, const char* got,
                         double factor, int& inexact) {
  const int ranks = static_cast<int>(inputs.size());
  if (!isFloat(type)) {
    uint64_t result = integer(type, &inputs[0][at]);
    for (int rank = 1; rank < ranks; ++rank) {
      const uint64_t next = integer(type, &inputs[static_cast<size_t>(rank)][at]);
      const bool isLess = isSigned(type) ? static_cast<int64_t>(next) < static_cast<int64_t>(result) : next < result;
      if (op == ncclProd) result *= next;
      else if (op == ncclMax) result = isLess ? result : next;
      else if (op == ncclMin) result = isLess ? next : result;
      else result += next;
    }
    if (op == ncclNumOps) result *= static_cast<uint64_t>(factor);
    char narrow[8];
    memcpy(narrow, &result, 8);
    if (op == ncclAvg) {
      // The sum wraps around in the type itself. The division afterwards truncates towards zero.
      const uint64_t wrapped = integer(type, narrow);
      result = isSigned(type) ? static_cast<uint64_t>(static_cast<int64_t>(wrapped) / ranks)
                              : wrapped / static_cast<uint64_t>(ranks);
      memcpy(narrow, &result, 8);
    }
    if (memcmp(narrow, got, kBytes[type]) != 0)
      throw Failure("integer result differs: type " + std::to_string(type) + " op " + std::to_string(op));
    return;
  }
  double result = decode(type, &inputs[0][at]), magnitude = std::fabs(result);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = decode(type, &inputs[static_cast<size_t>(rank)][at]);
    magnitude += std::fabs(next);
    if (op == ncclProd) result *= next;
    else if (op == ncclMax) result = std::fmax(result, next);
    else if (op == ncclMin) result = std::fmin(result, next);
    else result += next;
  }
  if (op == ncclProd) magnitude = std::fabs(result);
  if (op == ncclAvg) result /= ranks;
  if (op == ncclNumOps) result *= factor, magnitude *= std::fabs(factor);
  const double value = decode(type, got);
  const auto complain = [&] {
    throw Failure("float result differs: type " + std::to_string(type) + " op " + std::to_string(op) + " got " +
                  std::to_string(value) + " want " + std::to_string(result));
  };
  if (type == ncclFloat32 || type == ncclFloat64) {
    const double tolerance = magnitude * (type == ncclFloat32 ? 5e-7 : 1e-15) + 1e-300;
    if (!(std::fabs(value - result) <= tolerance)) complain();
    return;
  }
  // The result is rounded once: it must be a nearest number of the format, up to the error of float before the
  // rounding.
  const Format format = formatOf(type);
  unsigned bits = 0;
  memcpy(&bits, got, kBytes[type]);
  double largest = type == ncclFloat8e4m3 ? 448 : type == ncclFloat8e5m2 ? 57344 : INFINITY;
  const double clamped = std::min(std::max(result, -largest), largest);
  if (value == clamped) return;
  const int order = orderOf(format, bits);
  const auto distance = [&](int candidate) {
    const unsigned sign = 1u << (format.mantissaBits + format.exponentBits);
    const double other = decodeNarrow(
        format, candidate < 0 ? static_cast<unsigned>(-candidate) | sign : static_cast<unsigned>(candidate));
    return std::isnan(other) ? INFINITY : std::fabs(other - clamped);
  };
  const double slack = magnitude * 2e-7;
  if (!(std::fabs(value - clamped) <= std::min(distance(order - 1), distance(order + 1)) + slack)) complain();
  // Sums of 8-bit floats are exact before rounding, so ties must round to even.
  const bool isExact = kBytes[type] == 1 && (op == ncclSum || op == ncclNumOps);
  const bool isTie =
      std::fabs(value - clamped) == distance(order - 1) || std::fabs(value - clamped) == distance(order + 1);
  if (isExact && isTie && order % 2 != 0) complain();
  ++inexact;
}

class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(std::max<size_t>(bytes, 1)), address_(memory(bytes_)) {}
  ~Buffer() { cuMemFree_v2(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void put(const std::vector<char>& data, size_t at = 0) {
    OK(cuMemcpyHtoD_v2(address_ + at, data.data(), data.size()));
  }
  std::vector<char> get(size_t bytes, size_t at = 0) const {
    std::vector<char> data(bytes);
    OK(cuMemcpyDtoH_v2(data.data(), address_ + at, bytes));
    return data;
  }
  char* at(size_t offset = 0) const { return reinterpret_cast<char*>(address_) + offset; }

 private:
  size_t bytes_;
  CUdeviceptr address_;
};

inline void finish(const Rank& self) {
  OK(cuStreamSynchronize(self.stream));
  ncclResult_t error = ncclSuccess;
  NCCL(ncclCommGetAsyncError(self.comm, &error));
  if (error != ncclSuccess) throw Failure(std::string("asynchronous error: ") + ncclGetLastError(self.comm));
}

inline std::vector<std::vector<char>> inputs(int type, size_t count, int ranks, unsigned seed) {
  std::vector<std::vector<char>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(input(type, count, rank, seed));
  return all;
}

// All types, reductions and counts, in place and out of place.
inline void checkReductions(const Rank& self, const std::vector<size_t>& counts) {
  unsigned seed = 1;
  int inexact = 0;
  for (int type = 0; type < ncclNumTypes; ++type) {
    const auto typed = static_cast<ncclDataType_t>(type);
    const size_t element = kBytes[type];
    for (int op = ncclSum; op <= ncclNumOps; ++op) {
      ncclRedOp_t code = static_cast<ncclRedOp_t>(op);
      double factor = 3;
      if (op == ncclNumOps) {
        // The value 3 in each type.
        uint64_t bits = 3;
        const float three = 3;
        if (type == ncclFloat32) memcpy(&bits, &three, 4);
        if (type == ncclFloat64) memcpy(&bits, &factor, 8);
        if (type == ncclFloat16) bits = 0x4200;
        if (type == ncclBfloat16) bits = 0x4040;
        if (type == ncclFloat8e4m3) bits = 0x44;
        if (type == ncclFloat8e5m2) bits = 0x42;
        NCCL(ncclRedOpCreatePreMulSum(&code, &bits, typed, ncclScalarHostImmediate, self.comm));
      }
      for (const size_t count : counts) {
        const auto all = inputs(type, count, self.ranks, ++seed);
        const auto& own = all[static_cast<size_t>(self.rank)];
        Buffer send(own.size()), recv(own.size());
        send.put(own);
        NCCL(ncclAllReduce(send.at(), recv.at(), count, typed, code, self.comm, self.stream));
        finish(self);
        auto got = recv.get(own.size());
        for (size_t index = 0; index < count; ++index)
          checkElement(type, op, all, index * element, &got[index * element], factor, inexact);
        CHECK(send.get(own.size()) == own);
        NCCL(ncclAllReduce(send.at(), send.at(), count, typed, code, self.comm, self.stream));
        const int root = static_cast<int>(seed) % self.ranks;
        finish(self);
        CHECK(send.get(own.size()) == got);
        // The reduction to one rank returns the same bits and does not touch other ranks' buffers.
        send.put(own);
        recv.put(std::vector<char>(own.size(), 0x55));
        NCCL(ncclReduce(send.at(), recv.at(), count, typed, code, root, self.comm, self.stream));
        finish(self);
        CHECK(recv.get(own.size()) == (root == self.rank ? got : std::vector<char>(own.size(), 0x55)));
      }
      if (op == ncclNumOps) NCCL(ncclRedOpDestroy(code, self.comm));
    }
  }
}

inline void checkReduceScatter(const Rank& self, size_t count) {
  const auto ranks = static_cast<size_t>(self.ranks), rank = static_cast<size_t>(self.rank);
  int inexact = 0;
  for (const bool isInPlace : {false, true}) {
    const auto all = inputs(ncclFloat32, count * ranks, self.ranks, 77);
    Buffer send(all[rank].size()), recv(count * 4);
    send.put(all[rank]);
    char* out = isInPlace ? send.at(rank * count * 4) : recv.at();
    NCCL(ncclReduceScatter(send.at(), out, count, ncclFloat32, ncclSum, self.comm, self.stream));
    finish(self);
    const auto got = isInPlace ? send.get(count * 4, rank * count * 4) : recv.get(count * 4);
    for (size_t index = 0; index < count; ++index)
      checkElement(ncclFloat32, ncclSum, all, (rank * count + index) * 4, &got[index * 4], 0, inexact);
  }
}

// The collectives that only move data, with elements of several sizes.
inline void checkMovement(const Rank& self, size_t count) {
  const auto ranks = static_cast<size_t>(self.ranks), rank = static_cast<size_t>(self.rank);
  for (const auto type : {ncclUint8, ncclFloat16, ncclInt32, ncclFloat64}) {
    const size_t bytes = count * kBytes[type];
    const auto part = [&](const std::vector<char>& data, size_t index) {
      return std::vector<char>(data.begin() + static_cast<long>(index * bytes),
                               data.begin() + static_cast<long>((index + 1) * bytes));
    };
    for (const bool isInPlace : {false, true}) {
      const auto all = inputs(type, count, self.ranks, 5);
      std::vector<char> together;
      for (auto& each : all) together.insert(together.end(), each.begin(), each.end());
      const int root = self.ranks - 1;
      {
        Buffer send(bytes), recv(bytes);
        send.put(all[rank]);
        char* out = isInPlace ? send.at() : recv.at();
        NCCL(ncclBroadcast(send.at(), out, count, type, root, self.comm, self.stream));
        finish(self);
        CHECK((isInPlace ? send : recv).get(bytes) == all[static_cast<size_t>(root)]);
        send.put(all[rank]);
        NCCL(ncclBcast(send.at(), count, type, 0, self.comm, self.stream));
        finish(self);
        CHECK(send.get(bytes) == all[0]);
      }
      for (const bool toRootOnly : {false, true}) {
        Buffer send(bytes), recv(bytes * ranks);
        send.put(all[rank]);
        recv.put(all[rank], isInPlace ? rank * bytes : 0);
        const char* from = isInPlace ? recv.at(rank * bytes) : send.at();
        if (toRootOnly) NCCL(ncclGather(from, recv.at(), count, type, root, self.comm, self.stream));
        else NCCL(ncclAllGather(from, recv.at(), count, type, self.comm, self.stream));
        finish(self);
        if (!toRootOnly || self.rank == root) CHECK(recv.get(bytes * ranks) == together);
      }
      {
        const auto wide = inputs(type, count * ranks, self.ranks, 6);
        Buffer send(bytes * ranks), recv(bytes * ranks);
        send.put(wide[rank]);
        NCCL(ncclAlltoAll(send.at(), isInPlace ? send.at() : recv.at(), count, type, self.comm, self.stream));
        finish(self);
        const auto got = (isInPlace ? send : recv).get(bytes * ranks);
        for (size_t other = 0; other < ranks; ++other) CHECK(part(got, other) == part(wide[other], rank));
        send.put(wide[rank]);
        char* out = isInPlace && self.rank == root ? send.at(rank * bytes) : recv.at();
        NCCL(ncclScatter(send.at(), out, count, type, root, self.comm, self.stream));
        finish(self);
        std::vector<char> mine(bytes);
        OK(cuMemcpyDtoH_v2(mine.data(), reinterpret_cast<CUdeviceptr>(out), bytes));
        CHECK(mine == part(wide[static_cast<size_t>(root)], rank));
      }
    }
  }
}

// Every rank sends to every rank, including itself, in one group with a collective in the middle and several messages
// per pair.
inline void checkPointToPoint(const Rank& self, size_t count) {
  const auto ranks = static_cast<size_t>(self.ranks);
  constexpr int messages = 3;
  const auto content = [&](int from, int to, int message) {
    return input(ncclInt32, count + static_cast<size_t>(message), from, static_cast<unsigned>(to * 10 + message));
  };
  const size_t slot = (count + messages) * 4;
  Buffer send(slot * ranks * messages), recv(slot * ranks * messages), one(4), sum(4);
  const auto place = [&](int peer, int message) {
    return (static_cast<size_t>(peer) * messages + static_cast<size_t>(message)) * slot;
  };
  for (int peer = 0; peer < self.ranks; ++peer) {
    for (int message = 0; message < messages; ++message)
      send.put(content(self.rank, peer, message), place(peer, message));
  }
  const int value = 1;
  OK(cuMemcpyHtoD_v2(reinterpret_cast<CUdeviceptr>(one.at()), &value, 4));
  NCCL(ncclGroupStart());
  for (int step = 0; step < self.ranks; ++step) {
    // Each rank issues the messages in another order.
    const int peer = (self.rank * 3 + step) % self.ranks;
    for (int message = 0; message < messages; ++message) {
      NCCL(ncclRecv(recv.at(place(peer, message)), count + static_cast<size_t>(message), ncclInt32, peer, self.comm,
                    self.stream));
      NCCL(ncclSend(send.at(place(peer, message)), count + static_cast<size_t>(message), ncclInt32, peer, self.comm,
                    self.stream));
    }
    if (step == 0) NCCL(ncclAllReduce(one.at(), sum.at(), 1, ncclInt32, ncclSum, self.comm, self.stream));
  }
  NCCL(ncclGroupEnd());
  finish(self);
  for (int peer = 0; peer < self.ranks; ++peer) {
    for (int message = 0; message < messages; ++message) {
      const auto want = content(peer, self.rank, message);
      CHECK(recv.get(want.size(), place(peer, message)) == want);
    }
  }
  int total = 0;
  OK(cuMemcpyDtoH_v2(&total, reinterpret_cast<CUdeviceptr>(sum.at()), 4));
  EQUAL(total, self.ranks);
}

// Many small operations in a row must not mix up their exchanges.
inline void checkManySmall(const Rank& self, int rounds) {
  Buffer value(8 * 64);
  for (int round = 0; round < rounds; ++round) {
    std::vector<char> data(8 * 64);
    for (size_t index = 0; index < 64; ++index) {
      const int64_t number = self.rank + round + static_cast<int64_t>(index);
      memcpy(&data[index * 8], &number, 8);
    }
    OK(cuMemcpyHtoDAsync_v2(reinterpret_cast<CUdeviceptr>(value.at()), data.data(), data.size(), self.stream));
    NCCL(ncclAllReduce(value.at(), value.at(), 64, ncclInt64, ncclSum, self.comm, self.stream));
    NCCL(ncclBroadcast(value.at(), value.at(), 64, ncclInt64, round % self.ranks, self.comm, self.stream));
    finish(self);
    data = value.get(data.size());
    for (size_t index = 0; index < 64; ++index) {
      int64_t number = 0;
      memcpy(&number, &data[index * 8], 8);
      EQUAL(number, self.ranks * (self.ranks - 1) / 2 + self.ranks * (round + static_cast<int>(index)));
    }
  }
}

inline void checkAll(const Rank& self, size_t large) {
  checkReductions(self, {0, 1, 1027});
  checkReductions(self, {large});
  for (const size_t count : {size_t{1}, size_t{1001}, large}) {
    checkReduceScatter(self, count);
    checkMovement(self, count);
    checkPointToPoint(self, count);
  }
  checkManySmall(self, 50);
}

}  // namespace check
