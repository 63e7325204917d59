/* The structs to start NVSHMEM 3 with an id, so that no nvshmem.h is required. */
#ifndef SHOAL_BENCH_NVSHMEM_START_H
#define SHOAL_BENCH_NVSHMEM_START_H

struct unique_id {
  int version;
  char internal[124];
};
struct init_attributes {
  int version;
  void* mpi_comm;
  struct {
    int version;
    struct {
      int version;
      struct unique_id* id;
      int my_rank, ranks;
    } by_id;
    char rest[96];
  } arguments;
};
_Static_assert(sizeof(struct unique_id) == 128, "unique id");
_Static_assert(sizeof(struct init_attributes) == 144, "attributes");
/* Each struct starts with its version: the revision in the upper half, the size in the lower half. */
#define VERSION(type) ((1 << 16) + (int)sizeof(type))
enum { INIT_WITH_UNIQUE_ID = 1 << 3 };

#endif
