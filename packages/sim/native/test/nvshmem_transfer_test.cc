// Puts, gets, single elements, atomics, signals and waits, for all types.
#include <iterator>
#include <thread>

#include "pes.h"

static bool operator==(ShoalHalf left, ShoalHalf right) { return left.bits == right.bits; }
static bool operator==(ShoalBfloat16 left, ShoalBfloat16 right) { return left.bits == right.bits; }

namespace {

// A value of any type that identifies the PE and the index.
template <class Type>
Type valueOf(int pe, size_t index) {
  return static_cast<Type>(pe * 40 + static_cast<int>(index) + 1);
}
template <>
ShoalHalf valueOf<ShoalHalf>(int pe, size_t index) {
  return {static_cast<uint16_t>(pe * 4000 + static_cast<int>(index) + 1)};
}
template <>
ShoalBfloat16 valueOf<ShoalBfloat16>(int pe, size_t index) {
  return {static_cast<uint16_t>(pe * 4000 + static_cast<int>(index) + 1)};
}

template <class Type>
std::vector<Type> valuesOf(int pe, size_t count) {
  std::vector<Type> values(count);
  for (size_t index = 0; index < count; ++index) values[index] = valueOf<Type>(pe, index);
  return values;
}

template <class Type>
using Move = void (*)(Type*, const Type*, size_t, int);
template <class Type>
using StreamMove = void (*)(Type*, const Type*, size_t, int, cudaStream_t);
template <class Type>
using Strided = void (*)(Type*, const Type*, ptrdiff_t, ptrdiff_t, size_t, int);
template <class Type>
using StreamStrided = void (*)(Type*, const Type*, ptrdiff_t, ptrdiff_t, size_t, int, cudaStream_t);

struct Setting {
  int me = nvshmem_my_pe();
  int other = 1 - me;
  CUstream stream = check::stream();
};

constexpr size_t kCount = 37;

// `Element` is the type to use for functions whose own type is void.
template <class Type, class Element>
void moves(const Setting& at, Move<Type> put, Move<Type> putLater, StreamMove<Type> putOn, StreamMove<Type> putLaterOn,
           Move<Type> get, Move<Type> getLater, StreamMove<Type> getOn, StreamMove<Type> getLaterOn) {
  auto* cells = static_cast<Element*>(nvshmem_malloc(kCount * sizeof(Element)));
  const auto mine = valuesOf<Element>(at.me, kCount), theirs = valuesOf<Element>(at.other, kCount);
  const auto puts = [&](auto&& call) {
    pes::store(cells, std::vector<Element>(kCount));
    nvshmem_barrier_all();
    call();
    nvshmem_barrier_all();
    CHECK(pes::fetch<Element>(cells, kCount) == theirs);
    nvshmem_barrier_all();
  };
  puts([&] { put(cells, mine.data(), kCount, at.other); });
  puts([&] {
    putLater(cells, mine.data(), kCount, at.other);
    nvshmem_quiet();
  });
  puts([&] { putLater(cells, mine.data(), kCount, at.other); });  // a barrier completes it
  for (auto* call : {putOn, putLaterOn}) {
    puts([&] {
      call(cells, mine.data(), kCount, at.other, at.stream);
      nvshmemx_quiet_on_stream(at.stream);
      OK(cuStreamSynchronize(at.stream));
    });
  }
  pes::store(cells, mine);
  nvshmem_barrier_all();
  const auto gets = [&](auto&& call) {
    std::vector<Element> got(kCount);
    call(got.data());
    CHECK(got == theirs);
  };
  gets([&](Element* to) { get(to, cells, kCount, at.other); });
  gets([&](Element* to) {
    getLater(to, cells, kCount, at.other);
    nvshmem_quiet();
  });
  for (auto* call : {getOn, getLaterOn}) {
    gets([&](Element* to) {
      call(to, cells, kCount, at.other, at.stream);
      OK(cuStreamSynchronize(at.stream));
    });
  }
  put(cells, mine.data(), 0, at.other);
  get(nullptr, cells, 0, at.other);
  nvshmem_barrier_all();
  nvshmem_free(cells);
}

template <class Type, class Element>
void strides(const Setting& at, Strided<Type> put, StreamStrided<Type> putOn, Strided<Type> get,
             StreamStrided<Type> getOn) {
  constexpr size_t count = 9;
  auto* cells = static_cast<Element*>(nvshmem_malloc(100 * sizeof(Element)));
  const auto mine = valuesOf<Element>(at.me, 100), theirs = valuesOf<Element>(at.other, 100);
  for (const bool isOnStream : {false, true}) {
    pes::store(cells, std::vector<Element>(100));
    nvshmem_barrier_all();
    if (isOnStream) putOn(cells, mine.data(), 3, 2, count, at.other, at.stream);
    else put(cells, mine.data(), 3, 2, count, at.other);
    OK(cuStreamSynchronize(at.stream));
    nvshmem_barrier_all();
    const auto found = pes::fetch<Element>(cells, 100);
    for (size_t index = 0; index < 100; ++index) {
      CHECK(found[index] == (index % 3 == 0 && index / 3 < count ? theirs[index / 3 * 2] : Element{}));
    }
    nvshmem_barrier_all();
    pes::store(cells, mine);
    nvshmem_barrier_all();
    std::vector<Element> got(100);
    if (isOnStream) getOn(got.data(), cells, 1, 5, count, at.other, at.stream);
    else get(got.data(), cells, 1, 5, count, at.other);
    OK(cuStreamSynchronize(at.stream));
    for (size_t index = 0; index < 100; ++index) CHECK(got[index] == (index < count ? theirs[index * 5] : Element{}));
    nvshmem_barrier_all();
  }
  nvshmem_free(cells);
}

template <class Type>
void elements(const Setting& at, void (*put)(Type*, Type, int), void (*putOn)(Type*, Type, int, cudaStream_t),
              Type (*get)(const Type*, int), Type (*getOn)(const Type*, int, cudaStream_t)) {
  auto* cells = static_cast<Type*>(nvshmem_malloc(2 * sizeof(Type)));
  put(cells, valueOf<Type>(at.me, 0), at.other);
  putOn(cells + 1, valueOf<Type>(at.me, 1), at.other, at.stream);
  OK(cuStreamSynchronize(at.stream));
  nvshmem_barrier_all();
  CHECK(pes::fetch<Type>(cells, 2) == valuesOf<Type>(at.other, 2));
  CHECK(get(cells + 1, at.other) == valueOf<Type>(at.me, 1));
  CHECK(getOn(cells, at.other, at.stream) == valueOf<Type>(at.me, 0));
  nvshmem_barrier_all();
  nvshmem_free(cells);
}

template <class Type, class Element>
void signalled(const Setting& at,
               void (*first)(Type*, const Type*, size_t, uint64_t*, uint64_t, int, int, cudaStream_t),
               void (*second)(Type*, const Type*, size_t, uint64_t*, uint64_t, int, int, cudaStream_t)) {
  auto* cells = static_cast<Element*>(nvshmem_malloc(kCount * sizeof(Element)));
  auto* signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  const auto mine = valuesOf<Element>(at.me, kCount);
  CUstream sending = check::stream();
  const CUdeviceptr found = check::memory(kCount * sizeof(Element));
  for (auto* call : {first, second}) {
    pes::store(cells, std::vector<Element>(kCount));
    nvshmem_barrier_all();
    const uint64_t before = nvshmem_signal_fetch(signal);
    nvshmem_barrier_all();
    // Work after the wait in the stream sees the data.
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_GT, before, at.stream);
    OK(cuMemcpyDtoDAsync_v2(found, reinterpret_cast<CUdeviceptr>(cells), kCount * sizeof(Element), at.stream));
    call(cells, mine.data(), kCount, signal, 7, NVSHMEM_SIGNAL_ADD, at.other, sending);
    OK(cuStreamSynchronize(at.stream));
    CHECK(pes::fetch<Element>(reinterpret_cast<void*>(found), kCount) == valuesOf<Element>(at.other, kCount));
    EQUAL(nvshmem_signal_fetch(signal), before + 7);
    OK(cuStreamSynchronize(sending));
    nvshmem_barrier_all();
  }
  OK(cuStreamDestroy_v2(sending));
  OK(cuMemFree_v2(found));
  nvshmem_free(cells);
  nvshmem_free(signal);
}

struct Block {  // as wide as the elements of the 128-bit functions
  uint64_t low, high;
  explicit Block(int value = 0) : low(static_cast<uint64_t>(value)), high(~low) {}
  bool operator==(const Block& other) const { return low == other.low && high == other.high; }
};
template <size_t bits>
struct OfBits;
template <>
struct OfBits<8> {
  using Type = uint8_t;
};
template <>
struct OfBits<16> {
  using Type = uint16_t;
};
template <>
struct OfBits<32> {
  using Type = uint32_t;
};
template <>
struct OfBits<64> {
  using Type = uint64_t;
};
template <>
struct OfBits<128> {
  using Type = Block;
};

#define MOVES_OF(put, get)                                                                                       \
  nvshmem_##put, nvshmem_##put##_nbi, nvshmemx_##put##_on_stream, nvshmemx_##put##_nbi_on_stream, nvshmem_##get, \
      nvshmem_##get##_nbi, nvshmemx_##get##_on_stream, nvshmemx_##get##_nbi_on_stream
#define STRIDES_OF(put, get) nvshmem_##put, nvshmemx_##put##_on_stream, nvshmem_##get, nvshmemx_##get##_on_stream

void transfer(process::Peer& parent) {
  pes::Running running(parent);
  const Setting at;
#define TYPED(name, Type)                                                                   \
  moves<Type, Type>(at, MOVES_OF(name##_put, name##_get));                                  \
  strides<Type, Type>(at, STRIDES_OF(name##_iput, name##_iget));                            \
  elements<Type>(at, nvshmem_##name##_p, nvshmemx_##name##_p_on_stream, nvshmem_##name##_g, \
                 nvshmemx_##name##_g_on_stream);
  SHOAL_NVSHMEM_RMA_TYPES(TYPED)
#define SIZED(bits)                                                    \
  moves<void, OfBits<bits>::Type>(at, MOVES_OF(put##bits, get##bits)); \
  strides<void, OfBits<bits>::Type>(at, STRIDES_OF(iput##bits, iget##bits));
  SHOAL_NVSHMEM_SIZES(SIZED)
  moves<void, char>(at, MOVES_OF(putmem, getmem));
}

void signal(process::Peer& parent) {
  pes::Running running(parent);
  const Setting at;
#define SIGNALLED(name, Type) \
  signalled<Type, Type>(at, nvshmemx_##name##_put_signal_on_stream, nvshmemx_##name##_put_signal_nbi_on_stream);
  SHOAL_NVSHMEM_RMA_TYPES(SIGNALLED)
#define SIGNALLED_SIZE(bits)                                                     \
  signalled<void, OfBits<bits>::Type>(at, nvshmemx_put##bits##_signal_on_stream, \
                                      nvshmemx_put##bits##_signal_nbi_on_stream);
  SHOAL_NVSHMEM_SIZES(SIGNALLED_SIZE)
  signalled<void, char>(at, nvshmemx_putmem_signal_on_stream, nvshmemx_putmem_signal_nbi_on_stream);
  auto* cell = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  nvshmemx_signal_op_on_stream(cell, 40, NVSHMEM_SIGNAL_SET, at.other, at.stream);
  nvshmemx_signal_op_on_stream(cell, 2, NVSHMEM_SIGNAL_ADD, at.other, at.stream);
  nvshmemx_barrier_all_on_stream(at.stream);
  OK(cuStreamSynchronize(at.stream));
  EQUAL(nvshmem_signal_fetch(cell), 42);
}

template <class Type>
void waits(const Setting& at, void (*until)(Type*, int, Type, cudaStream_t),
           void (*untilAll)(Type*, size_t, const int*, int, Type, cudaStream_t),
           void (*untilVector)(Type*, size_t, const int*, int, Type*, cudaStream_t), void (*put)(Type*, Type, int)) {
  auto* cells = static_cast<Type*>(nvshmem_calloc(4, sizeof(Type)));
  CUdeviceptr status = check::memory(4 * sizeof(int)), wanted = check::memory(4 * sizeof(Type));
  pes::store(reinterpret_cast<void*>(status), std::vector<int>{0, 0, 1, 0});
  pes::store(reinterpret_cast<void*>(wanted), std::vector<Type>{5, 6, 7, 8});
  nvshmem_barrier_all();
  const auto isWaiting = [&] { return cuStreamQuery(at.stream) == CUDA_ERROR_NOT_READY; };
  struct Case {
    int comparison;
    Type compared, fulfilling;
  };
  for (const Case& each : {Case{NVSHMEM_CMP_NE, 0, 3}, Case{NVSHMEM_CMP_EQ, 9, 9}, Case{NVSHMEM_CMP_GT, 9, 10},
                           Case{NVSHMEM_CMP_GE, 12, 12}, Case{NVSHMEM_CMP_LT, 12, 11}, Case{NVSHMEM_CMP_LE, 4, 4}}) {
    until(cells, each.comparison, each.compared, at.stream);
    CHECK(isWaiting());
    nvshmem_sync_all();
    put(cells, each.fulfilling, at.other);
    OK(cuStreamSynchronize(at.stream));
    nvshmem_sync_all();
  }
  // The status skips the third value.
  put(cells, 0, at.other);
  nvshmem_barrier_all();
  untilAll(cells, 4, reinterpret_cast<int*>(status), NVSHMEM_CMP_EQ, 1, at.stream);
  for (const size_t index : {0, 1, 3}) {
    CHECK(isWaiting());
    nvshmem_sync_all();
    put(cells + index, 1, at.other);
  }
  OK(cuStreamSynchronize(at.stream));
  nvshmem_barrier_all();
  untilVector(cells, 4, reinterpret_cast<int*>(status), NVSHMEM_CMP_EQ, reinterpret_cast<Type*>(wanted), at.stream);
  for (const size_t index : {0, 1, 3}) {
    CHECK(isWaiting());
    nvshmem_sync_all();
    put(cells + index, static_cast<Type>(5 + index), at.other);
  }
  OK(cuStreamSynchronize(at.stream));
  nvshmem_barrier_all();
  untilAll(cells, 0, nullptr, NVSHMEM_CMP_EQ, 1, at.stream);
  OK(cuStreamSynchronize(at.stream));
  OK(cuMemFree_v2(status));
  OK(cuMemFree_v2(wanted));
  nvshmem_free(cells);
}

void wait(process::Peer& parent) {
  pes::Running running(parent);
  const Setting at;
#define WAITS(name, Type)                                                                             \
  waits<Type>(at, nvshmemx_##name##_wait_until_on_stream, nvshmemx_##name##_wait_until_all_on_stream, \
              nvshmemx_##name##_wait_until_all_vector_on_stream, nvshmem_##name##_p);
  SHOAL_NVSHMEM_WAIT_TYPES(WAITS)
}

template <class Type>
void fetchSetSwap(const Setting& at, Type (*fetch)(const Type*, int), void (*set)(Type*, Type, int),
                  Type (*swap)(Type*, Type, int)) {
  auto* cell = static_cast<Type*>(nvshmem_calloc(1, sizeof(Type)));
  set(cell, valueOf<Type>(at.me, 3), at.other);
  CHECK(fetch(cell, at.other) == valueOf<Type>(at.me, 3));
  CHECK(swap(cell, valueOf<Type>(at.me, 4), at.other) == valueOf<Type>(at.me, 3));
  nvshmem_barrier_all();
  CHECK(pes::fetch<Type>(cell, 1)[0] == valueOf<Type>(at.other, 4));
  nvshmem_free(cell);
}

constexpr int kRounds = 500;

template <class Type>
void counts(const Setting& at, void (*increment)(Type*, int), Type (*fetchIncrement)(Type*, int),
            void (*add)(Type*, Type, int), Type (*fetchAdd)(Type*, Type, int),
            Type (*compareSwap)(Type*, Type, Type, int)) {
  // All PEs count in one PE's memory.
  auto* cells = static_cast<Type*>(nvshmem_calloc(3, sizeof(Type)));
  uint64_t sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    increment(cells, 0);
    sum += static_cast<uint64_t>(fetchIncrement(cells + 1, 0));
    add(cells, 3, 0);
    fetchAdd(cells, 2, 0);
    for (;;) {
      const Type seen = compareSwap(cells + 2, 0, 0, 0);
      if (compareSwap(cells + 2, seen, static_cast<Type>(seen + 1), 0) == seen) break;
    }
  }
  nvshmem_barrier_all();
  if (at.me == 0) {
    const auto found = pes::fetch<Type>(cells, 3);
    EQUAL(found[0], 2 * 6 * kRounds);
    EQUAL(found[1], 2 * kRounds);
    EQUAL(found[2], 2 * kRounds);
  }
  // Each number was returned exactly once.
  auto* sums = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  nvshmem_uint64_atomic_add(sums, sum, 0);
  nvshmem_barrier_all();
  EQUAL(nvshmem_uint64_g(sums, 0), uint64_t{2 * kRounds} * (2 * kRounds - 1) / 2);
  nvshmem_barrier_all();
  nvshmem_free(sums);
  nvshmem_free(cells);
}

template <class Type>
void bits(const Setting& at, void (*conjunction)(Type*, Type, int), void (*disjunction)(Type*, Type, int),
          void (*difference)(Type*, Type, int), Type (*fetchConjunction)(Type*, Type, int),
          Type (*fetchDisjunction)(Type*, Type, int), Type (*fetchDifference)(Type*, Type, int)) {
  auto* cell = static_cast<Type*>(nvshmem_malloc(sizeof(Type)));
  pes::store(cell, std::vector<Type>{0x0f0f});
  nvshmem_barrier_all();
  conjunction(cell, 0x00ff, at.other);
  EQUAL(fetchDisjunction(cell, 0x1000, at.other), 0x000f);
  disjunction(cell, 0x0f00, at.other);
  EQUAL(fetchDifference(cell, 0x0f0f, at.other), 0x1f0f);
  difference(cell, 0x0003, at.other);
  EQUAL(fetchConjunction(cell, 0x0001, at.other), 0x1003);
  EQUAL(fetchConjunction(cell, 0, at.other), 0x0001);
  nvshmem_barrier_all();
  nvshmem_free(cell);
}

void atomics(process::Peer& parent) {
  pes::Running running(parent);
  const Setting at;
#define EXTENDED(name, Type) \
  fetchSetSwap<Type>(at, nvshmem_##name##_atomic_fetch, nvshmem_##name##_atomic_set, nvshmem_##name##_atomic_swap);
  SHOAL_NVSHMEM_EXTENDED_AMO_TYPES(EXTENDED)
#define STANDARD(name, Type)                                                                                    \
  counts<Type>(at, nvshmem_##name##_atomic_inc, nvshmem_##name##_atomic_fetch_inc, nvshmem_##name##_atomic_add, \
               nvshmem_##name##_atomic_fetch_add, nvshmem_##name##_atomic_compare_swap);
  SHOAL_NVSHMEM_STANDARD_AMO_TYPES(STANDARD)
#define BITWISE(name, Type)                                                                            \
  bits<Type>(at, nvshmem_##name##_atomic_and, nvshmem_##name##_atomic_or, nvshmem_##name##_atomic_xor, \
             nvshmem_##name##_atomic_fetch_and, nvshmem_##name##_atomic_fetch_or, nvshmem_##name##_atomic_fetch_xor);
  SHOAL_NVSHMEM_BITWISE_AMO_TYPES(BITWISE)
}

}  // namespace

ROLES({"transfer", transfer}, {"signal", signal}, {"wait", wait}, {"atomics", atomics});

TEST(puts_and_gets_of_all_types) { pes::Job("transfer", 2).succeed(); }
TEST(a_signal_comes_after_its_data) { pes::Job("signal", 2).succeed(); }
TEST(streams_wait_for_values) { pes::Job("wait", 2).succeed(); }
TEST(atomics_are_atomic_between_processes) { pes::Job("atomics", 2).succeed(); }
