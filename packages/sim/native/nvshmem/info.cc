// Functions that need no session.
#include <cstdio>

#include "shoal/nvshmem.h"

void nvshmem_info_get_version(int* major, int* minor) {
  if (major != nullptr) *major = NVSHMEM_MAJOR_VERSION;
  if (minor != nullptr) *minor = NVSHMEM_MINOR_VERSION;
}

void nvshmem_info_get_name(char* name) {
  if (name == nullptr) return;
  snprintf(name, NVSHMEM_MAX_NAME_LEN, "NVSHMEM v%d.%d.%d", NVSHMEM_VENDOR_MAJOR_VERSION, NVSHMEM_VENDOR_MINOR_VERSION,
           NVSHMEM_VENDOR_PATCH_VERSION);
}

void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
  if (major != nullptr) *major = NVSHMEM_VENDOR_MAJOR_VERSION;
  if (minor != nullptr) *minor = NVSHMEM_VENDOR_MINOR_VERSION;
  if (patch != nullptr) *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}
