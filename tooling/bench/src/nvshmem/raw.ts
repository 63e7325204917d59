import { NativeMemory } from '@shoal/ffi'
import {
  NVSHMEMX_INIT_ATTR_INITIALIZER,
  NVSHMEMX_UNIQUEID_INITIALIZER,
  nvshmem_barrier_all,
  nvshmem_malloc,
  nvshmemx_get_uniqueid,
  nvshmemx_hostlib_init_attr,
  nvshmemx_init_attr_t,
  nvshmemx_init_flags,
  nvshmemx_set_attr_uniqueid_args,
  nvshmemx_uniqueid_t,
} from '@shoal/nvshmem-sys'

/** Creates the id for connecting PEs, with the raw package. */
export function makeRawId(): Uint8Array {
  const id = nvshmemx_uniqueid_t.allocate(NVSHMEMX_UNIQUEID_INITIALIZER)
  must(nvshmemx_get_uniqueid(id), 'nvshmemx_get_uniqueid')
  return id
}

/** Starts NVSHMEM. Blocks until all PEs start it. The device's context must be current. */
export function startRaw(pe: number, pes: number, bytes: Uint8Array): void {
  const id = NativeMemory.allocate(nvshmemx_uniqueid_t.size)
  id.bytes.set(bytes)
  const attributes = nvshmemx_init_attr_t.allocate(NVSHMEMX_INIT_ATTR_INITIALIZER)
  must(nvshmemx_set_attr_uniqueid_args(pe, pes, id, attributes), 'nvshmemx_set_attr_uniqueid_args')
  must(
    nvshmemx_hostlib_init_attr(nvshmemx_init_flags.NVSHMEMX_INIT_WITH_UNIQUEID, attributes),
    'nvshmemx_hostlib_init_attr',
  )
}

/** Allocates two symmetric buffers of this size. */
export function allocateRaw(bytes: number): { here: bigint; there: bigint } {
  const [here, there] = [nvshmem_malloc(bytes), nvshmem_malloc(bytes)]
  if (here === 0n || there === 0n) throw new Error('nvshmem_malloc: no symmetric memory')
  nvshmem_barrier_all()
  return { here, there }
}

function must(status: number, api: string): void {
  if (status !== 0) throw new Error(`${api}: ${status}`)
}
