// The symmetric heap.
#include <iterator>

#include "mapped.h"
#include "pes.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

bool isZero(const void* address, size_t bytes) {
  for (const char byte : pes::fetch<char>(address, bytes)) {
    if (byte != 0) return false;
  }
  return true;
}

void allocate(process::Peer& parent) {
  pes::Running running(parent);
  const int me = nvshmem_my_pe(), other = 1 - me;
  CHECK(nvshmem_malloc(0) == nullptr);
  void* first = nvshmem_malloc(1000);
  void* second = nvshmem_malloc(1000);
  CHECK(first != nullptr && second != nullptr && first != second);
  pes::store(first, std::vector<char>(1000, 7));
  // An allocation has the same offset on all PEs, so the peer addresses have equal distances.
  CHECK(nvshmem_ptr(first, me) == first);
  char* theirFirst = static_cast<char*>(nvshmem_ptr(first, other));
  char* theirSecond = static_cast<char*>(nvshmem_ptr(second, other));
  EQUAL(theirSecond - theirFirst, static_cast<char*>(second) - static_cast<char*>(first));
  CHECK(nvshmem_ptr(first, 2) == nullptr && nvshmem_ptr(first, -1) == nullptr && nvshmem_ptr(&parent, 0) == nullptr);
  nvshmem_free(first);
  // calloc gets the same memory again and clears it.
  void* cleared = nvshmem_calloc(10, 100);
  CHECK(cleared == first && isZero(cleared, 1000));
  CHECK(nvshmem_calloc(SIZE_MAX / 2, 4) == nullptr);
  for (const size_t alignment : {size_t{8}, size_t{4096}, kMiB, 4 * kMiB}) {
    void* aligned = nvshmem_align(alignment, 100);
    CHECK(aligned != nullptr);
    EQUAL((static_cast<char*>(aligned) - static_cast<char*>(cleared) + reinterpret_cast<uint64_t>(cleared)) %
              std::min(alignment, 2 * kMiB),
          0);
    nvshmem_free(aligned);
  }
  void* odd = nvshmem_align(24, 100);
  CHECK(odd != nullptr);
  nvshmem_free(odd);
  nvshmem_free(nullptr);
  nvshmem_free(cleared);
  nvshmem_free(second);
}

void grow(process::Peer& parent) {
  setenv("SHOAL_SIM_MEMORY_BYTES", "268435456", 1);
  pes::Running running(parent);
  size_t before = 0, total = 0, after = 0;
  OK(cuMemGetInfo_v2(&before, &total));
  std::vector<void*> parts;
  for (int round = 0; round < 3; ++round) {
    parts.push_back(nvshmem_malloc(70 * kMiB));
    CHECK(parts.back() != nullptr);
    pes::store(static_cast<char*>(parts.back()) + 70 * kMiB - 1, std::vector<char>{static_cast<char>(round)});
  }
  OK(cuMemGetInfo_v2(&after, &total));
  CHECK(before - after >= 210 * kMiB);
  // The heap is full on all PEs, but still usable.
  CHECK(nvshmem_malloc(70 * kMiB) == nullptr);
  CHECK(nvshmem_malloc(size_t{1} << 50) == nullptr);
  CHECK(nvshmem_malloc(kMiB) != nullptr);
  for (size_t round = 0; round < 3; ++round) {
    EQUAL(nvshmem_char_g(static_cast<char*>(parts[round]) + 70 * kMiB - 1, 1 - nvshmem_my_pe()),
          static_cast<char>(round));
  }
  nvshmem_barrier_all();
  nvshmem_free(parts[0]);
  nvshmem_free(parts[1]);
  // Adjacent freed blocks are merged.
  parts[0] = nvshmem_malloc(140 * kMiB);
  CHECK(parts[0] != nullptr);
}

// One PE has less memory left than the other. The allocation fails on both.
void runOutOnOne(process::Peer& parent) {
  setenv("SHOAL_SIM_MEMORY_BYTES", "268435456", 1);
  pes::Running running(parent);
  if (nvshmem_my_pe() == 0) check::memory(200 * kMiB);
  CHECK(nvshmem_malloc(100 * kMiB) == nullptr);
  CHECK(nvshmem_malloc(10 * kMiB) != nullptr);
}

void disagree(process::Peer& parent) {
  pes::beQuiet();
  pes::Running running(parent);
  const int me = nvshmem_my_pe();
  CHECK(nvshmem_malloc(me == 0 ? 100 : 200) == nullptr);
  CHECK(nvshmem_malloc(me == 0 ? 0 : 200) == nullptr);
  void* first = nvshmem_malloc(100);
  void* second = nvshmem_malloc(100);
  nvshmem_free(me == 0 ? first : second);
  nvshmem_free(first);
  CHECK(nvshmem_malloc(100) == first);
  CHECK(shoalSimNvshmemFailure() == nullptr);
}

// The driver treats the heap as device memory: in copies, fills, streams and attributes.
void useAsDeviceMemory(process::Peer& parent) {
  pes::Running running(parent);
  const int me = nvshmem_my_pe(), other = 1 - me;
  const size_t bytes = 64 * 1024;
  void* cells = nvshmem_malloc(bytes);
  const auto own = reinterpret_cast<CUdeviceptr>(cells),
             theirs = reinterpret_cast<CUdeviceptr>(nvshmem_ptr(cells, other));
  unsigned type = 0;
  int device = -1;
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, own));
  EQUAL(type, CU_MEMORYTYPE_DEVICE);
  OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, own));
  EQUAL(device, me);
  OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, theirs));
  EQUAL(device, other);
  CUstream stream = check::stream();
  OK(cuMemsetD32Async(own, 0x01010101u * static_cast<unsigned>(me + 1), bytes / 4, stream));
  OK(cuStreamSynchronize(stream));
  nvshmem_barrier_all();
  // Through the peer's address, with driver calls only.
  const CUdeviceptr local = check::memory(bytes);
  OK(cuMemcpyAsync(local, theirs, bytes, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(pes::fetch<char>(reinterpret_cast<void*>(local), bytes) ==
        std::vector<char>(bytes, static_cast<char>(other + 1)));
  nvshmem_barrier_all();
  // The local side may be device memory. An access beyond the mapped memory is a driver error.
  OK(cuMemsetD8_v2(local, 9, bytes));
  nvshmem_putmem(cells, reinterpret_cast<void*>(local), bytes, other);
  nvshmem_barrier_all();
  CHECK(pes::fetch<char>(cells, bytes) == std::vector<char>(bytes, 9));
  EQUAL(cuMemcpyAsync(local, theirs, size_t{1} << 40, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamDestroy_v2(stream));
}

void registerLocal(process::Peer& parent) {
  pes::Running running(parent);
  std::vector<char> buffer(8192);
  OK(nvshmemx_buffer_register(buffer.data(), 4096));
  EQUAL(nvshmemx_buffer_register(buffer.data() + 100, 10), NVSHMEMX_ERROR_INVALID_VALUE);
  EQUAL(nvshmemx_buffer_register(buffer.data(), 8192), NVSHMEMX_ERROR_INVALID_VALUE);
  OK(nvshmemx_buffer_register(buffer.data() + 4096, 4096));
  EQUAL(nvshmemx_buffer_register(nullptr, 4096), NVSHMEMX_ERROR_INTERNAL);
  EQUAL(nvshmemx_buffer_register(buffer.data(), 0), NVSHMEMX_ERROR_INVALID_VALUE);
  OK(nvshmemx_buffer_unregister(buffer.data()));
  EQUAL(nvshmemx_buffer_unregister(buffer.data()), NVSHMEMX_ERROR_INVALID_VALUE);
  nvshmemx_buffer_unregister_all();
  OK(nvshmemx_buffer_register(buffer.data(), 8192));
}

// Memory that a PE has mapped itself becomes a part of the heap.
void registerSymmetric(process::Peer& parent) {
  pes::Running running(parent);
  const int me = nvshmem_my_pe(), other = 1 - me;
  using mapped::kPiece;
  const auto handle = mapped::create(kPiece, mapped::onDevice(me, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
  OK(cuMemMap(range, kPiece, 0, handle, 0));
  mapped::allow(range, kPiece, me);
  void* own = reinterpret_cast<void*>(range);
  int* symmetric = static_cast<int*>(nvshmemx_buffer_register_symmetric(own, kPiece, 0));
  CHECK(symmetric != nullptr && symmetric != own);
  nvshmem_int_p(symmetric + 5, 77 + me, other);
  nvshmem_barrier_all();
  EQUAL(pes::fetch<int>(own, 6)[5], 77 + other);
  CHECK(nvshmemx_buffer_register_symmetric(own, 4096, 0) == nullptr);
  CHECK(nvshmemx_buffer_register_symmetric(&parent, kPiece, 0) == nullptr);
  CHECK(nvshmemx_buffer_unregister_symmetric(symmetric, 4096) != 0);
  nvshmem_barrier_all();
  EQUAL(nvshmemx_buffer_unregister_symmetric(symmetric, kPiece), 0);
  CHECK(nvshmem_ptr(symmetric, other) == nullptr);
  // If one PE passes other memory, the registration fails on all PEs.
  CHECK(nvshmemx_buffer_register_symmetric(me == 0 ? own : static_cast<void*>(&parent), kPiece, 0) == nullptr);
  EQUAL(pes::fetch<int>(own, 6)[5], 77 + other);
}

// A write to a team's multicast address arrives at all PEs of the team, at the same offset.
void writeToAll(process::Peer& parent) {
  setenv("SHOAL_SIM_DEVICES", "3", 1);
  unsetenv("NVSHMEM_DISABLE_NVLS");
  const auto place = parent.receive<pes::Place>();
  check::Primary primary(place.pe);
  nvshmemx_init_attr_t attributes = {};
  nvshmemx_uniqueid_t id = place.id;
  OK(nvshmemx_set_attr_uniqueid_args(place.pe, place.size, &id, &attributes));
  OK(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
  const int me = nvshmem_my_pe();
  int* cells = static_cast<int*>(nvshmem_calloc(8, sizeof(int)));
  int* all = static_cast<int*>(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, cells));
  CHECK(all != nullptr && all != cells);
  EQUAL(static_cast<int*>(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, cells + 3)) - all, 3);
  CHECK(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, &parent) == nullptr);
  CHECK(nvshmemx_mc_ptr(NVSHMEMX_TEAM_SAME_MYPE_NODE, cells) == nullptr);
  CHECK(nvshmemx_mc_ptr(NVSHMEM_TEAM_INVALID, cells) == nullptr);
  pes::store(all + me, std::vector<int>{100 + me});
  nvshmem_team_t pair = NVSHMEM_TEAM_INVALID;
  OK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, 2, nullptr, 0, &pair));
  if (me == 0) pes::store(nvshmemx_mc_ptr(pair, cells + 5), std::vector<int>{7});
  nvshmem_barrier_all();
  CHECK(pes::fetch<int>(cells, 8) == (std::vector<int>{100, 101, 102, 0, 0, me == 1 ? 0 : 7, 0, 0}));
  if (me != 1) nvshmem_team_destroy(pair);
  CHECK(nvshmemx_mc_ptr(pair, cells) == nullptr);
  // Memory that was allocated later has a multicast address, too.
  char* more = static_cast<char*>(nvshmem_malloc(100 * kMiB));
  if (me == 2) pes::store(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, more + 99 * kMiB), std::vector<char>{5});
  nvshmem_barrier_all();
  EQUAL(pes::fetch<char>(more + 99 * kMiB, 1)[0], 5);
  setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
  CHECK(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, cells) == nullptr);
  nvshmemx_hostlib_finalize();
  size_t free = 0, total = 0;
  OK(cuMemGetInfo_v2(&free, &total));
  EQUAL(free, total);
}

int descriptorsAfter(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    nvshmemx_init_attr_t attributes = {};
    OK(nvshmemx_hostlib_init_attr(0, &attributes));
    CHECK(nvshmem_malloc(1000) != nullptr);
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    OK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, 1, nullptr, 0, &team));
    nvshmemx_hostlib_finalize();
  }
  return mapped::openDescriptors();
}

void leaveNothing(process::Peer&) {
  check::Primary primary(0);
  size_t before = 0, after = 0, total = 0;
  const int descriptors = descriptorsAfter(1);
  OK(cuMemGetInfo_v2(&before, &total));
  EQUAL(descriptorsAfter(40), descriptors);
  OK(cuMemGetInfo_v2(&after, &total));
  EQUAL(after, before);
}

}  // namespace

ROLES({"allocate", allocate}, {"grow", grow}, {"run out on one", runOutOnOne}, {"disagree", disagree},
      {"use as device memory", useAsDeviceMemory}, {"register local", registerLocal},
      {"register symmetric", registerSymmetric}, {"write to all", writeToAll}, {"leave nothing", leaveNothing});

TEST(allocations_are_symmetric) { pes::Job("allocate", 2).succeed(); }
TEST(the_heap_grows_until_the_device_is_full) { pes::Job("grow", 2).succeed(); }
TEST(memory_of_all_or_of_none) { pes::Job("run out on one", 2).succeed(); }
TEST(disagreement_is_noticed) { pes::Job("disagree", 2).succeed(); }
TEST(symmetric_memory_is_device_memory) { pes::Job("use as device memory", 2).succeed(); }
TEST(local_memory_is_registered_once) { pes::Job("register local", 1).succeed(); }
TEST(mapped_memory_joins_the_heap) { pes::Job("register symmetric", 2).succeed(); }
TEST(a_multicast_address_reaches_all) { pes::Job("write to all", 3).succeed(); }
TEST(a_session_leaves_nothing_open) {
  process::Child child("leave nothing");
  EQUAL(child.wait(), 0);
}
