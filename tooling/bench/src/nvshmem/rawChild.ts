// One PE through the raw package, the counterpart of native/nvshmem.c: PE PES BYTES
import { repeat, timeOf } from '@shoal/cli/bench'
import { type CUstream, cuStreamSynchronize } from '@shoal/cuda-sys/driver'
import { Device } from '@shoal/driver'
import {
  formatNvshmemVersion,
  nvshmem as library,
  nvshmem_barrier_all,
  nvshmem_getmem,
  nvshmem_putmem,
  nvshmem_quiet,
  nvshmem_sync_all,
  nvshmem_uint64_atomic_add,
  nvshmem_uint64_atomic_compare_swap,
  nvshmem_uint64_atomic_fetch,
  nvshmem_uint64_atomic_fetch_add,
  nvshmem_uint64_atomic_set,
  nvshmem_uint64_g,
  nvshmem_uint64_p,
  nvshmemx_barrier_all_on_stream,
  nvshmemx_getmem_on_stream,
  nvshmemx_putmem_on_stream,
} from '@shoal/nvshmem-sys'
import { serve } from '../processes/serve.js'
import { type Cases, loopOf } from './loopOf.js'
import { allocateRaw, makeRawId, startRaw } from './raw.js'

const [pe = 0, pes = 0, most = 0] = process.argv.slice(2).map(Number)
const device = Device.get(pe)
const peer = (pe + 1) % pes
// Global, so that it lives as long as the process.
const queue = device.createStream({ nonBlocking: true })

await serve({
  ...(pe === 0 ? { makeId: makeRawId } : {}),
  start: async (id) => {
    const cases = inContext(() => {
      startRaw(pe, pes, id)
      return makeCases()
    })
    return {
      readyLine: `ready ${formatNvshmemVersion(library.version ?? 0)}`,
      // The device's context is current during the loops, as in the C program.
      answer: (words) => inContext(() => timeOf(...loopOf(cases, words))),
    }
  },
})
process.exit()

function inContext<T>(work: () => T): T {
  return device.primaryContext.run(work)
}

function makeCases(): Cases {
  const { here, there } = allocateRaw(most)
  const stream = queue.handle as CUstream
  const wait = (): void => {
    const status = cuStreamSynchronize(stream)
    if (status !== 0) throw new Error(`cuStreamSynchronize: ${status}`)
  }
  const put = (bytes: number) => (): void => nvshmemx_putmem_on_stream(there, here, bytes, peer, stream)
  const get = (bytes: number) => (): void => nvshmemx_getmem_on_stream(here, there, bytes, peer, stream)
  const waited = (call: () => void) => (): void => {
    call()
    wait()
  }
  return {
    put: (bytes) => repeat(put(bytes), wait),
    get: (bytes) => repeat(get(bytes), wait),
    'put-latency': (bytes) => repeat(waited(put(bytes))),
    'get-latency': (bytes) => repeat(waited(get(bytes))),
    'host-put': (bytes) => repeat(() => nvshmem_putmem(there, here, bytes, peer)),
    'host-get': (bytes) => repeat(() => nvshmem_getmem(here, there, bytes, peer)),
    p: () => repeat((i) => nvshmem_uint64_p(there, i, peer), nvshmem_quiet),
    g: () => repeat(() => nvshmem_uint64_g(there, peer)),
    'atomic-add': () => repeat(() => nvshmem_uint64_atomic_add(there, 1, peer), nvshmem_quiet),
    'atomic-fetch-add': () => repeat(() => nvshmem_uint64_atomic_fetch_add(there, 1, peer)),
    'atomic-set': () => repeat((i) => nvshmem_uint64_atomic_set(there, i, peer), nvshmem_quiet),
    'atomic-fetch': () => repeat(() => nvshmem_uint64_atomic_fetch(there, peer)),
    'atomic-compare-swap': () => repeat((i) => nvshmem_uint64_atomic_compare_swap(there, i, i + 1, peer)),
    barrier: () => repeat(nvshmem_barrier_all),
    sync: () => repeat(nvshmem_sync_all),
    'barrier-on-stream': () => repeat(() => nvshmemx_barrier_all_on_stream(stream), wait),
  }
}
