// Initial values of structs, like the header's macros of the same names, for `allocate` and `write` of the codecs.
import type { StructValue } from '@shoal/ffi'
import type {
  nvshmem_team_config_t,
  nvshmemx_init_args_t,
  nvshmemx_init_attr_t,
  nvshmemx_uniqueid_args_t,
  nvshmemx_uniqueid_t,
} from './generated/index.gen.js'

/**
 * Returns the `version` field of an NVSHMEM struct: the revision in the upper bits, the size in the lower ones. NVSHMEM
 * refuses a struct with an unknown version, so zeroed memory does not work.
 * @param size size of the struct in bytes
 */
export function structVersion(size: number, revision = 1): number {
  return revision * 0x1_0000 + size
}

/** A unique id before `nvshmemx_get_uniqueid` writes it. */
export const NVSHMEMX_UNIQUEID_INITIALIZER: StructValue<nvshmemx_uniqueid_t> = { version: 0x1_0000 + 128 }

/** Arguments of the bootstrap by unique id, before `nvshmemx_set_attr_uniqueid_args`. */
export const NVSHMEMX_UNIQUEID_ARGS_INITIALIZER: StructValue<nvshmemx_uniqueid_args_t> = {
  version: 0x1_0000 + 24,
  id: 0n,
  myrank: -1,
  nranks: -1,
}

/** The part of the init attributes that holds the bootstrap's arguments. */
export const NVSHMEMX_INIT_ARGS_INITIALIZER: StructValue<nvshmemx_init_args_t> = {
  version: 0x1_0000 + 128,
  uid_args: NVSHMEMX_UNIQUEID_ARGS_INITIALIZER,
}

/** Argument of `nvshmemx_hostlib_init_attr`, before a function `nvshmemx_set_attr_…_args` completes it. */
export const NVSHMEMX_INIT_ATTR_INITIALIZER: StructValue<nvshmemx_init_attr_t> = {
  version: 0x1_0000 + 144,
  mpi_comm: 0n,
  args: NVSHMEMX_INIT_ARGS_INITIALIZER,
}

/** Configuration of a new team. */
export const NVSHMEM_TEAM_CONFIG_INITIALIZER: StructValue<nvshmem_team_config_t> = {
  version: 0x2_0000 + 64,
  num_contexts: -1,
  uniqueid: 0xffff_ffff_ffff_ffffn,
}
