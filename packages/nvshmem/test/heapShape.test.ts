import { describe, expect, test } from 'vitest'
// Not exported. Only GPUs have heaps of these shapes.
import { heapShape } from '../src/workarounds/heapShape.js'
import { HeapSpace } from '../src/workarounds/heapSpace.js'

const [KiB, MiB, GiB] = [2 ** 10, 2 ** 20, 2 ** 30] as const
const limitedBy = 'NVSHMEM_MAX_MEMORY_PER_GPU'

describe('heap settings in the environment', () => {
  test('default to steps of 512 MiB up to 128 GiB', () => {
    expect(heapShape({}, false)).toEqual({ step: 512 * MiB, limit: 128 * GiB, limitedBy })
    expect(heapShape({}, true)).toEqual({ step: 2 * MiB, limit: 128 * GiB, limitedBy })
  })

  test.for([
    ['64M', 64 * MiB],
    ['1.5g', 1.5 * GiB],
    ['4096k', 4 * MiB],
    [String(8 * MiB), 8 * MiB],
    ['1K', 2 * MiB],
    ['1T', 2 * GiB],
    ['many', 512 * MiB],
    ['', 512 * MiB],
  ] as const)('include NVSHMEM_CUMEM_GRANULARITY=%s', ([text, step]) => {
    expect(heapShape({ NVSHMEM_CUMEM_GRANULARITY: text }, false).step).toBe(step)
  })

  test('round the limit to whole steps', () => {
    expect(heapShape({ NVSHMEM_MAX_MEMORY_PER_GPU: '1025M' }, false).limit).toBe(1536 * MiB)
  })

  test.for([{ NVSHMEM_DISABLE_CUDA_VMM: '1' }, { NVSHMEM_DISABLE_CUDA_VMM: 'true' }, { NVSHMEM_HEAP_KIND: 'SYSMEM' }])(
    'with %o disable growth',
    (environment) => {
      const whole = { step: 0, limit: GiB, limitedBy: 'NVSHMEM_SYMMETRIC_SIZE' }
      expect(heapShape(environment, false)).toEqual(whole)
      expect(heapShape({ ...environment, NVSHMEM_SYMMETRIC_SIZE: '512K' }, false)).toEqual({
        ...whole,
        limit: 512 * KiB,
      })
    },
  )

  test('enable growth unless it is switched off', () => {
    expect(heapShape({ NVSHMEM_DISABLE_CUDA_VMM: '0' }, false).step).toBe(512 * MiB)
  })
})

describe('the known address space of the heap', () => {
  // Mappings of an H200: the first step, at whose start NVSHMEM's own memory lies, and the later growth.
  const mappings = [
    { start: 0, end: 512 },
    { start: 512, end: 1536 },
    { start: 4096, end: 4608 },
  ]
  const mappingAt = (address: number): (typeof mappings)[number] | undefined =>
    mappings.find(({ start, end }) => address >= start && address < end)

  test('starts with the first allocation, and grows with allocations beyond it', () => {
    const space = new HeapSpace()
    expect([space.isKnown, space.mappedBytes, space.largestFree()]).toEqual([false, 0, 0])
    space.add(124, 100, mappingAt)
    expect([space.isKnown, space.mappedBytes, space.largestFree()]).toEqual([true, 512, 288])
    space.add(224, 600, mappingAt)
    expect([space.mappedBytes, space.largestFree()]).toEqual([1536, 712])
  })

  test('merges freed ranges with adjacent free ranges, also across mappings', () => {
    const space = new HeapSpace()
    for (const address of [124, 424, 724]) space.add(address, 300, mappingAt)
    space.remove(424)
    expect(space.largestFree()).toBe(512)
    space.add(1024, 512, mappingAt)
    expect(space.largestFree()).toBe(300)
    space.remove(124)
    expect(space.largestFree()).toBe(600)
  })

  test('does not merge mappings that are not adjacent', () => {
    const space = new HeapSpace()
    space.add(1500, 36, mappingAt)
    space.add(4096, 12, mappingAt)
    expect(space.largestFree()).toBe(500)
  })

  test('has no free memory without a known mapping', () => {
    const space = new HeapSpace()
    space.add(9000, 8, mappingAt)
    expect([space.isKnown, space.largestFree()]).toEqual([false, 0])
  })
})
