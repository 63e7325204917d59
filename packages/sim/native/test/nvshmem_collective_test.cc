// Collectives of all types, checked against their definition.
#include <cmath>
#include <iterator>
#include <random>

#include "pes.h"

namespace {

constexpr int kPes = 3;

float widened(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Conversion between numbers of any type and their value.
template <class Type>
struct Number {
  static Type from(double value) { return static_cast<Type>(value); }
  static double to(Type value) { return static_cast<double>(value); }
};
template <>
struct Number<ShoalBfloat16> {
  static double to(ShoalBfloat16 value) { return widened(static_cast<uint32_t>(value.bits) << 16); }
  // Finds the nearer of two neighbours by search: slow, and independent of the library's method.
  static ShoalBfloat16 from(double value) {
    const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const double magnitude = std::fabs(value);
    uint16_t low = 0, high = 0x7f80;
    if (magnitude >= 0x1.ffp127) return {static_cast<uint16_t>(sign | 0x7f80)};
    while (high - low > 1) {
      const auto middle = static_cast<uint16_t>((low + high) / 2);
      (to({middle}) <= magnitude ? low : high) = middle;
    }
    const double below = magnitude - to({low}), above = (high == 0x7f80 ? 0x1p128 : to({high})) - magnitude;
    return {static_cast<uint16_t>(sign | (below < above || (below == above && low % 2 == 0) ? low : high))};
  }
};
template <>
struct Number<ShoalHalf> {
  static double to(ShoalHalf value) {
    const int exponent = value.bits >> 10 & 0x1f, fraction = value.bits & 0x3ff;
    const double magnitude = exponent == 31  ? INFINITY
                             : exponent == 0 ? std::ldexp(fraction, -24)
                                             : std::ldexp(fraction + 1024, exponent - 25);
    return (value.bits & 0x8000) != 0 ? -magnitude : magnitude;
  }
  static ShoalHalf from(double value) {
    const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const double magnitude = std::fabs(value);
    uint16_t low = 0, high = 0x7c00;
    if (magnitude >= 65520) return {static_cast<uint16_t>(sign | 0x7c00)};
    while (high - low > 1) {
      const auto middle = static_cast<uint16_t>((low + high) / 2);
      (to({middle}) <= magnitude ? low : high) = middle;
    }
    const double below = magnitude - to({low}), above = (high == 0x7c00 ? 65536 : to({high})) - magnitude;
    return {static_cast<uint16_t>(sign | (below < above || (below == above && low % 2 == 0) ? low : high))};
  }
};

// Values that fit every type and differ for every PE and index.
template <class Type>
std::vector<Type> valuesOf(int pe, size_t count) {
  std::vector<Type> values(count);
  for (size_t index = 0; index < count; ++index)
    values[index] = Number<Type>::from(static_cast<double>((index * 7 + static_cast<size_t>(pe) * 5) % 4 + 1));
  return values;
}

template <class Type>
bool areEqual(const std::vector<Type>& left, const std::vector<Type>& right) {
  return left.size() == right.size() &&
         (left.empty() || memcmp(left.data(), right.data(), left.size() * sizeof(Type)) == 0);
}

struct Setting {
  nvshmem_team_t team;
  std::vector<int> members;
  int own = nvshmem_team_my_pe(team);
  CUstream stream = check::stream();
};

constexpr size_t kCounts[] = {0, 1, 33, 2500};

// Runs `call(dest, source, count, isOnStream)` in all variants and compares the results with `wanted(source values of
// all members, count)`.
template <class Element, class Call, class Want>
void tryAll(const Setting& at, size_t sourceParts, size_t destinationParts, bool mayBeInPlace, Call&& call,
            Want&& want) {
  const size_t members = kPes, most = kCounts[3];  // the largest team's, because all PEs must allocate the same size
  auto* source = static_cast<Element*>(nvshmem_malloc(members * most * sizeof(Element)));
  auto* destination = static_cast<Element*>(nvshmem_malloc(members * most * sizeof(Element)));
  for (const size_t count : kCounts) {
    for (const bool isOnStream : {false, true}) {
      for (const bool isInPlace : {false, true}) {
        if (isInPlace && !mayBeInPlace) continue;
        std::vector<std::vector<Element>> sources;
        for (const int pe : at.members) sources.push_back(valuesOf<Element>(pe, sourceParts * count));
        Element* to = isInPlace ? source : destination;
        pes::store(destination, std::vector<Element>(members * most));
        pes::store(source, sources[static_cast<size_t>(at.own)]);
        OK(nvshmem_barrier(at.team));
        OK(call(to, source, count, isOnStream));
        if (isOnStream) OK(cuStreamSynchronize(at.stream));
        CHECK(areEqual(pes::fetch<Element>(to, destinationParts * count), want(sources, count)));
        if (!isInPlace)
          CHECK(areEqual(pes::fetch<Element>(source, sourceParts * count), sources[static_cast<size_t>(at.own)]));
      }
    }
  }
  nvshmem_free(source);
  nvshmem_free(destination);
}

template <class Type>
using Collective = int (*)(nvshmem_team_t, Type*, const Type*, size_t);
template <class Type>
using StreamCollective = int (*)(nvshmem_team_t, Type*, const Type*, size_t, cudaStream_t);
template <class Type>
using Rooted = int (*)(nvshmem_team_t, Type*, const Type*, size_t, int);
template <class Type>
using StreamRooted = int (*)(nvshmem_team_t, Type*, const Type*, size_t, int, cudaStream_t);

template <class Type, class Element>
void exchanges(const Setting& at, Collective<Type> allToAll, StreamCollective<Type> allToAllOn,
               Collective<Type> collect, StreamCollective<Type> collectOn, Rooted<Type> broadcast,
               StreamRooted<Type> broadcastOn) {
  const size_t members = at.members.size();
  const auto own = static_cast<size_t>(at.own);
  using Sources = std::vector<std::vector<Element>>;
  tryAll<Element>(
      at, members, members, true,
      [&](Element* to, Element* from, size_t count, bool isOnStream) {
        return isOnStream ? allToAllOn(at.team, to, from, count, at.stream) : allToAll(at.team, to, from, count);
      },
      [&](const Sources& sources, size_t count) {
        std::vector<Element> all;
        for (auto& source : sources)
          all.insert(all.end(), source.begin() + static_cast<long>(own * count),
                     source.begin() + static_cast<long>((own + 1) * count));
        return all;
      });
  tryAll<Element>(
      at, 1, members, true,
      [&](Element* to, Element* from, size_t count, bool isOnStream) {
        return isOnStream ? collectOn(at.team, to, from, count, at.stream) : collect(at.team, to, from, count);
      },
      [&](const Sources& sources, size_t) {
        std::vector<Element> all;
        for (auto& source : sources) all.insert(all.end(), source.begin(), source.end());
        return all;
      });
  for (int round = 0; round < kPes; ++round) {
    const int root = round % static_cast<int>(members);
    tryAll<Element>(
        at, 1, 1, true,
        [&](Element* to, Element* from, size_t count, bool isOnStream) {
          return isOnStream ? broadcastOn(at.team, to, from, count, root, at.stream)
                            : broadcast(at.team, to, from, count, root);
        },
        [&](const Sources& sources, size_t) { return sources[static_cast<size_t>(root)]; });
  }
}

template <class Type, class Combine>
void reductions(const Setting& at, Collective<Type> reduce, StreamCollective<Type> reduceOn, Collective<Type> scatter,
                StreamCollective<Type> scatterOn, Combine&& combine) {
  const size_t members = at.members.size();
  using Sources = std::vector<std::vector<Type>>;
  const auto combined = [&](const Sources& sources, size_t start, size_t count) {
    std::vector<Type> all;
    for (size_t index = start; index < start + count; ++index) {
      double value = Number<Type>::to(sources[0][index]);
      for (size_t member = 1; member < members; ++member)
        value = combine(value, Number<Type>::to(sources[member][index]));
      all.push_back(Number<Type>::from(value));
    }
    return all;
  };
  tryAll<Type>(
      at, 1, 1, true,
      [&](Type* to, Type* from, size_t count, bool isOnStream) {
        return isOnStream ? reduceOn(at.team, to, from, count, at.stream) : reduce(at.team, to, from, count);
      },
      [&](const Sources& sources, size_t count) { return combined(sources, 0, count); });
  tryAll<Type>(
      at, members, 1, true,
      [&](Type* to, Type* from, size_t count, bool isOnStream) {
        return isOnStream ? scatterOn(at.team, to, from, count, at.stream) : scatter(at.team, to, from, count);
      },
      [&](const Sources& sources, size_t count) {
        return combined(sources, static_cast<size_t>(at.own) * count, count);
      });
}

template <class Body>
void onTeams(process::Peer& parent, Body&& body) {
  pes::Running running(parent);
  body(Setting{NVSHMEM_TEAM_WORLD, {0, 1, 2}});
  // All PEs allocate, so all must call this: with a team of two and a team of one.
  nvshmem_team_t row = NVSHMEM_TEAM_INVALID, column = NVSHMEM_TEAM_INVALID;
  OK(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, nullptr, 0, &row, nullptr, 0, &column));
  body(Setting{row, nvshmem_my_pe() < 2 ? std::vector<int>{0, 1} : std::vector<int>{2}});
}

#define PAIR(name) nvshmem_##name, nvshmemx_##name##_on_stream

void exchange(process::Peer& parent) {
  pes::Running running(parent);
  const Setting at{NVSHMEM_TEAM_WORLD, {0, 1, 2}};
#define EXCHANGES(name, Type) \
  exchanges<Type, Type>(at, PAIR(name##_alltoall), PAIR(name##_fcollect), PAIR(name##_broadcast));
  SHOAL_NVSHMEM_RMA_TYPES(EXCHANGES)
  exchanges<void, uint8_t>(at, PAIR(alltoallmem), PAIR(fcollectmem), PAIR(broadcastmem));
}

uint64_t bitsOf(double value) { return static_cast<uint64_t>(value); }

void reduce(process::Peer& parent) {
  pes::Running running(parent);
  const Setting at{NVSHMEM_TEAM_WORLD, {0, 1, 2}};
#define REDUCTIONS_OF(name, Type, operation, ...) \
  reductions<Type>(at, PAIR(name##_##operation##_reduce), PAIR(name##_##operation##_reducescatter), __VA_ARGS__);
#define REDUCTIONS(name, Type)                                                                    \
  REDUCTIONS_OF(name, Type, sum, [](double left, double right) { return left + right; })          \
  REDUCTIONS_OF(name, Type, prod, [](double left, double right) { return left * right; })         \
  REDUCTIONS_OF(name, Type, min, [](double left, double right) { return std::min(left, right); }) \
  REDUCTIONS_OF(name, Type, max, [](double left, double right) { return std::max(left, right); })
  SHOAL_NVSHMEM_REDUCE_TYPES(REDUCTIONS)
#define BITWISE(name, Type)                                                                                  \
  REDUCTIONS_OF(name, Type, and,                                                                             \
                [](double left, double right) { return static_cast<double>(bitsOf(left) & bitsOf(right)); }) \
  REDUCTIONS_OF(name, Type, or,                                                                              \
                [](double left, double right) { return static_cast<double>(bitsOf(left) | bitsOf(right)); }) \
  REDUCTIONS_OF(name, Type, xor, [](double left, double right) {                                             \
    return static_cast<double>(bitsOf(left) ^ bitsOf(right));                                                \
  })
  SHOAL_NVSHMEM_BITWISE_REDUCE_TYPES(BITWISE)
}

void onSmallerTeams(process::Peer& parent) {
  onTeams(parent, [](const Setting& at) {
    exchanges<int, int>(at, PAIR(int_alltoall), PAIR(int_fcollect), PAIR(int_broadcast));
    reductions<double>(at, PAIR(double_sum_reduce), PAIR(double_sum_reducescatter),
                       [](double left, double right) { return left + right; });
  });
}

template <class Type>
void overflow(int (*sum)(nvshmem_team_t, Type*, const Type*, size_t),
              int (*product)(nvshmem_team_t, Type*, const Type*, size_t)) {
  auto* cells = static_cast<Type*>(nvshmem_malloc(2 * sizeof(Type)));
  const auto largest = std::numeric_limits<Type>::max();
  pes::store(cells, std::vector<Type>{largest, largest});
  OK(sum(NVSHMEM_TEAM_WORLD, cells, cells, 1));
  OK(product(NVSHMEM_TEAM_WORLD, cells + 1, cells + 1, 1));
  // Three times the largest value, and its third power, modulo the size of the type.
  const auto found = pes::fetch<Type>(cells, 2);
  EQUAL(found[0], static_cast<Type>(static_cast<uint64_t>(largest) * 3));
  EQUAL(found[1], static_cast<Type>(static_cast<uint64_t>(largest) * static_cast<uint64_t>(largest) *
                                    static_cast<uint64_t>(largest)));
  nvshmem_free(cells);
}

// Rounding of many bit patterns: sums of 16-bit floats are rounded once, to nearest.
template <class Type>
void rounding(int (*sum)(nvshmem_team_t, Type*, const Type*, size_t), uint16_t infinity) {
  constexpr size_t count = 20000;
  auto* cells = static_cast<Type*>(nvshmem_malloc(count * sizeof(Type)));
  std::vector<std::vector<Type>> sources;
  for (int pe = 0; pe < kPes; ++pe) {
    std::mt19937 random(static_cast<unsigned>(pe) + 1);
    std::vector<Type> values(count);
    for (Type& value : values) {
      do value = Type{static_cast<uint16_t>(random())};
      while ((value.bits & infinity) == infinity);
    }
    // Similar exponents, so that the sums need rounding.
    for (size_t index = 0; index < count / 2; ++index)
      values[index].bits = static_cast<uint16_t>((random() & 0x83ff) | (index & 0x3c00 & infinity));
    sources.push_back(values);
  }
  pes::store(cells, sources[static_cast<size_t>(nvshmem_my_pe())]);
  OK(sum(NVSHMEM_TEAM_WORLD, cells, cells, count));
  const auto found = pes::fetch<Type>(cells, count);
  for (size_t index = 0; index < count; ++index) {
    float value = static_cast<float>(Number<Type>::to(sources[0][index]));
    for (int pe = 1; pe < kPes; ++pe)
      value += static_cast<float>(Number<Type>::to(sources[static_cast<size_t>(pe)][index]));
    if (std::isnan(value))
      CHECK((found[index].bits & infinity) == infinity && (found[index].bits & 0x7fff) != infinity);
    else EQUAL(found[index].bits, Number<Type>::from(value).bits);
  }
  nvshmem_free(cells);
}

void arithmetic(process::Peer& parent) {
  pes::Running running(parent);
  overflow<int8_t>(nvshmem_int8_sum_reduce, nvshmem_int8_prod_reduce);
  overflow<uint8_t>(nvshmem_uint8_sum_reduce, nvshmem_uint8_prod_reduce);
  overflow<int16_t>(nvshmem_int16_sum_reduce, nvshmem_int16_prod_reduce);
  overflow<unsigned short>(nvshmem_ushort_sum_reduce, nvshmem_ushort_prod_reduce);
  overflow<int32_t>(nvshmem_int32_sum_reduce, nvshmem_int32_prod_reduce);
  overflow<uint32_t>(nvshmem_uint32_sum_reduce, nvshmem_uint32_prod_reduce);
  overflow<int64_t>(nvshmem_int64_sum_reduce, nvshmem_int64_prod_reduce);
  overflow<uint64_t>(nvshmem_uint64_sum_reduce, nvshmem_uint64_prod_reduce);
  rounding<ShoalHalf>(nvshmem_half_sum_reduce, 0x7c00);
  rounding<ShoalBfloat16>(nvshmem_bfloat16_sum_reduce, 0x7f80);
}

void disagree(process::Peer& parent) {
  pes::beQuiet();
  pes::Running running(parent);
  const int me = nvshmem_my_pe();
  auto* cells = static_cast<int*>(nvshmem_calloc(16, sizeof(int)));
  int local = 0;
  EQUAL(nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, cells, cells, me == 1 ? 2 : 3), NVSHMEMX_ERROR_SYMMETRY);
  EQUAL(me == 1 ? nvshmem_float_sum_reduce(NVSHMEM_TEAM_WORLD, reinterpret_cast<float*>(cells),
                                           reinterpret_cast<float*>(cells), 3)
                : nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, cells, cells, 3),
        NVSHMEMX_ERROR_SYMMETRY);
  EQUAL(me == 1 ? nvshmem_int_max_reduce(NVSHMEM_TEAM_WORLD, cells, cells, 3)
                : nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, cells, cells, 3),
        NVSHMEMX_ERROR_SYMMETRY);
  EQUAL(nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, cells, cells, 1, me == 1 ? 0 : 1), NVSHMEMX_ERROR_SYMMETRY);
  EQUAL(nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, cells, cells, 1, 3), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, cells, cells, 1, -1), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, me == 1 ? &local : cells, cells, 1), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, cells, cells, SIZE_MAX / 2), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmem_int_sum_reduce(77, cells, cells, 1), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmemx_int_sum_reduce_on_stream(77, cells, cells, 1, nullptr), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, cells, &local, 1, nullptr), NVSHMEMX_ERROR_INVALID_VALUE);
  OK(nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, cells, cells, 3));
  // On a stream, no status can be returned, so the context fails.
  CUstream stream = check::stream();
  OK(nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, cells, cells, me == 1 ? 2 : 3, stream));
  EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_EXTERNAL_DEVICE);
}

// The end waits for queued work.
void endWithWork(process::Peer& parent) {
  pes::Running running(parent);
  CUstream stream = check::stream();
  const CUdeviceptr result = check::memory(sizeof(int));
  auto* cells = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  pes::store(cells, std::vector<int>{nvshmem_my_pe() + 1});
  nvshmem_barrier_all();
  OK(shoalSimStreamDelay(stream, 100000000));
  OK(nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, cells, cells, 1, stream));
  OK(cuMemcpyDtoDAsync_v2(result, reinterpret_cast<CUdeviceptr>(cells), sizeof(int), stream));
  nvshmemx_hostlib_finalize();
  OK(cuStreamSynchronize(stream));
  EQUAL(pes::fetch<int>(reinterpret_cast<void*>(result), 1)[0], 6);
}

// Stream operations run in order, also with more calls than any queue holds and with several teams at once.
void manyInStreams(process::Peer& parent) {
  pes::Running running(parent);
  nvshmem_team_t other = NVSHMEM_TEAM_INVALID;
  OK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, kPes, nullptr, 0, &other));
  CUstream streams[] = {check::stream(), check::stream()};
  const nvshmem_team_t teams[] = {NVSHMEM_TEAM_WORLD, other};
  auto* cells = static_cast<uint64_t*>(nvshmem_malloc(2 * sizeof(uint64_t)));
  pes::store(cells, std::vector<uint64_t>{1, 1});
  nvshmem_barrier_all();
  for (int round = 0; round < 30; ++round) {
    for (size_t index = 0; index < 2; ++index) {
      OK(nvshmemx_uint64_sum_reduce_on_stream(teams[index], cells + index, cells + index, 1, streams[index]));
      OK(nvshmemx_barrier_on_stream(teams[index], streams[index]));
      OK(nvshmemx_team_sync_on_stream(teams[index], streams[index]));
    }
  }
  nvshmemx_sync_all_on_stream(streams[0]);
  nvshmemx_barrier_all_on_stream(streams[0]);
  for (CUstream stream : streams) OK(cuStreamSynchronize(stream));
  uint64_t want = 1;
  for (int round = 0; round < 30; ++round) want *= kPes;
  CHECK(pes::fetch<uint64_t>(cells, 2) == std::vector<uint64_t>(2, want));
}

}  // namespace

ROLES({"exchange", exchange}, {"reduce", reduce}, {"on smaller teams", onSmallerTeams}, {"arithmetic", arithmetic},
      {"disagree", disagree}, {"many in streams", manyInStreams}, {"end with work", endWithWork});

TEST(exchanges_of_all_types) { pes::Job("exchange", kPes).succeed(); }
TEST(reductions_of_all_types) { pes::Job("reduce", kPes).succeed(); }
TEST(collectives_of_teams) { pes::Job("on smaller teams", kPes).succeed(); }
TEST(integers_wrap_around_and_floats_round_once) { pes::Job("arithmetic", kPes).succeed(); }
TEST(disagreement_is_an_error) { pes::Job("disagree", kPes).succeed(); }
TEST(streams_of_collectives_stay_in_step) { pes::Job("many in streams", kPes).succeed(); }
TEST(the_end_waits_for_streams) { pes::Job("end with work", kPes).succeed(); }
