// Meeting, symmetric memory, and going apart.
#include <dirent.h>

#include <iterator>

#include "pes.h"

namespace {

void ring(process::Peer& parent) {
  EQUAL(nvshmemx_init_status(), NVSHMEM_STATUS_NOT_INITIALIZED);
  pes::Running running(parent);
  const int me = nvshmem_my_pe(), all = nvshmem_n_pes();
  EQUAL(me, running.place.pe);
  EQUAL(all, running.place.size);
  CHECK(nvshmemx_init_status() >= NVSHMEM_STATUS_IS_INITIALIZED);
  int* cells = static_cast<int*>(nvshmem_malloc(16 * sizeof(int)));
  CHECK(cells != nullptr);
  pes::store(cells, std::vector<int>(16, -1));
  nvshmem_barrier_all();
  std::vector<int> mine(16, 100 + me), theirs(16);
  nvshmem_putmem(cells, mine.data(), 16 * sizeof(int), (me + 1) % all);
  nvshmem_barrier_all();
  CHECK(pes::fetch<int>(cells, 16) == std::vector<int>(16, 100 + (me + all - 1) % all));
  nvshmem_getmem(theirs.data(), cells, 16 * sizeof(int), (me + 1) % all);
  CHECK(theirs == mine);
  nvshmem_barrier_all();
  nvshmem_free(cells);
}

}  // namespace

ROLES({"ring", ring});

TEST(processes_put_into_their_neighbours) {
  for (const int size : {1, 2, 4}) {
    pes::Job job("ring", size);
    job.succeed();
  }
}
