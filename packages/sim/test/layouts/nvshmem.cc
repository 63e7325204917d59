// Layouts and values of the NVSHMEM ABI: those of this library, or with SHOAL_REFERENCE those of NVIDIA's headers.
#include <cstddef>
#include <cstdio>

#ifdef SHOAL_REFERENCE
#include <nvshmem_host.h>
#else
#include "shoal/nvshmem.h"
#endif

#define VALUE(name) printf("%s = %lld\n", #name, static_cast<long long>(name))
#define SIZE(type) printf("sizeof %s = %zu\n", #type, sizeof(type))
#define OFFSET(type, member) printf("offset %s.%s = %zu\n", #type, #member, offsetof(type, member))

int main() {
  SIZE(nvshmem_team_t);
  SIZE(nvshmemx_team_uniqueid_t);
  SIZE(nvshmemx_uniqueid_t);
  OFFSET(nvshmemx_uniqueid_t, internal);
  SIZE(nvshmemx_uniqueid_args_t);
  OFFSET(nvshmemx_uniqueid_args_t, id);
  OFFSET(nvshmemx_uniqueid_args_t, myrank);
  OFFSET(nvshmemx_uniqueid_args_t, nranks);
  SIZE(nvshmemx_init_args_t);
  OFFSET(nvshmemx_init_args_t, uid_args);
  SIZE(nvshmemx_init_attr_t);
  OFFSET(nvshmemx_init_attr_t, mpi_comm);
  OFFSET(nvshmemx_init_attr_t, args);
  SIZE(nvshmem_team_config_t);
  OFFSET(nvshmem_team_config_t, num_contexts);
  OFFSET(nvshmem_team_config_t, uniqueid);
  SIZE(nvshmemi_version_t);
  VALUE(NVSHMEM_VENDOR_MAJOR_VERSION);
  VALUE(NVSHMEM_VENDOR_MINOR_VERSION);
  VALUE(NVSHMEM_VENDOR_PATCH_VERSION);
  VALUE(NVSHMEM_MAJOR_VERSION);
  VALUE(NVSHMEM_MINOR_VERSION);
  VALUE(NVSHMEM_MAX_NAME_LEN);
  VALUE(NVSHMEMX_ERROR_INVALID_VALUE);
  VALUE(NVSHMEMX_ERROR_OUT_OF_MEMORY);
  VALUE(NVSHMEMX_ERROR_NOT_SUPPORTED);
  VALUE(NVSHMEMX_ERROR_SYMMETRY);
  VALUE(NVSHMEMX_ERROR_GPU_NOT_SELECTED);
  VALUE(NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED);
  VALUE(NVSHMEMX_ERROR_INTERNAL);
  VALUE(NVSHMEMX_INIT_WITH_MPI_COMM);
  VALUE(NVSHMEMX_INIT_WITH_SHMEM);
  VALUE(NVSHMEMX_INIT_WITH_UNIQUEID);
  VALUE(NVSHMEM_STATUS_NOT_INITIALIZED);
  VALUE(NVSHMEM_STATUS_IS_BOOTSTRAPPED);
  VALUE(NVSHMEM_STATUS_IS_INITIALIZED);
  VALUE(NVSHMEM_STATUS_LIMITED_MPG);
  VALUE(NVSHMEM_STATUS_FULL_MPG);
  VALUE(NVSHMEM_THREAD_SERIALIZED);
  VALUE(NVSHMEM_THREAD_MULTIPLE);
  VALUE(NVSHMEM_CMP_EQ);
  VALUE(NVSHMEM_CMP_NE);
  VALUE(NVSHMEM_CMP_GT);
  VALUE(NVSHMEM_CMP_LE);
  VALUE(NVSHMEM_CMP_LT);
  VALUE(NVSHMEM_CMP_GE);
  VALUE(NVSHMEM_SIGNAL_SET);
  VALUE(NVSHMEM_SIGNAL_ADD);
  VALUE(NVSHMEM_TEAM_INVALID);
  VALUE(NVSHMEM_TEAM_WORLD);
  VALUE(NVSHMEM_TEAM_SHARED);
  VALUE(NVSHMEMX_TEAM_NODE);
  VALUE(NVSHMEMX_TEAM_SAME_MYPE_NODE);
  VALUE(NVSHMEMI_TEAM_SAME_GPU);
  VALUE(NVSHMEMI_TEAM_GPU_LEADERS);
  VALUE(NVSHMEM_TEAMS_MIN);
  VALUE(NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS);
  VALUE(NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID);
}
