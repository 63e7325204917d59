import { DisposedError, StatusError } from '@shoal/types'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { compile, lastOccupancy, shimActiveBlocks, shimEnvironment } from './support/shim.js'

// A library in front of the software device answers with the numbers of one multiprocessor.
Object.assign(process.env, shimEnvironment(compile('kernelShim')), { SHOAL_SIM_DEVICES: '1' })
const { availableSharedMemory, maxActiveBlocks, searchBlockSize } = await import('@shoal/driver/shared')
const { TestDevice, throwing } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')
type BlockSizeOptions = import('@shoal/driver/shared').BlockSizeOptions

const device = new TestDevice(0)
const context = device.primaryContext
const kernel = 0x1234_5678_9abcn
const facts = { maxThreadsPerBlock: 1024, warpSize: 32, multiprocessors: 7, threadsPerMultiprocessor: 2048 }
let before = 0

beforeEach(() => {
  before = lastOccupancy().calls
})

afterAll(() => device.dispose())

const gone = {
  get handle(): bigint {
    throw new DisposedError('Kernel')
  },
}

const notKernels = [undefined, null, 5, 'axpy', {}, { handle: 5 }] as const

describe('maxActiveBlocks', () => {
  test('passes kernel, block, shared memory and flags, with no shared memory or flags by default', () => {
    expect(maxActiveBlocks(device, kernel, 256)).toBe(8)
    expect(lastOccupancy()).toMatchObject({ kernel, blockSize: 256, sharedMemory: 0, flags: 0, calls: before + 1 })
    expect(
      maxActiveBlocks(context, { handle: kernel }, 33, { sharedMemory: 70_000, disableCachingOverride: true }),
    ).toBe(3)
    expect(lastOccupancy()).toMatchObject({ kernel, blockSize: 33, sharedMemory: 70_000, flags: 1 })
    expect(maxActiveBlocks(device, kernel, 1024, { sharedMemory: 2 ** 40 })).toBe(0)
    expect(lastOccupancy().sharedMemory).toBe(2 ** 40)
  })

  test.each([
    [0, RangeError],
    [1025, RangeError],
    [-1, RangeError],
    [1.5, TypeError],
    ['32', TypeError],
    [undefined, TypeError],
  ])('refuses the block size %s', (size, kind) => {
    expect(() => maxActiveBlocks(device, kernel, size as number)).toThrow(kind)
    expect(() => maxActiveBlocks(device, kernel, size as number)).toThrow(
      /^maxActiveBlocks: blockSize must be an integer from 1 to 1024, not /,
    )
    expect(lastOccupancy().calls).toBe(before)
  })

  test.each([
    [{ shared: 1 }, TypeError, "options must have only the keys sharedMemory, disableCachingOverride, not 'shared'"],
    [new (class Options {})(), TypeError, 'options must be a plain object such as { sharedMemory, disableCaching'],
    [null, TypeError, 'options must be a plain object such as { sharedMemory, disableCachingOverride }, not null'],
    [{ sharedMemory: -1 }, RangeError, 'sharedMemory must be '],
    [{ sharedMemory: '1' }, TypeError, 'sharedMemory must be '],
    [{ disableCachingOverride: 1 }, TypeError, 'disableCachingOverride must be a boolean, not 1'],
  ])('refuses the options %o', (options, kind, message) => {
    expect(() => maxActiveBlocks(device, kernel, 32, options as never)).toThrow(kind)
    expect(() => maxActiveBlocks(device, kernel, 32, options as never)).toThrow(`maxActiveBlocks: ${message}`)
    expect(() => maxActiveBlocks(device, kernel, 32, throwing('sharedMemory'))).toThrow('thrown by a getter')
    expect(lastOccupancy().calls).toBe(before)
  })

  test('and availableSharedMemory refuse wrong kernels and wrong owners', async () => {
    const calls = {
      maxActiveBlocks: (owner: unknown, handle: unknown) => maxActiveBlocks(owner as never, handle as never, 32),
      availableSharedMemory: (owner: unknown, handle: unknown) =>
        availableSharedMemory(owner as never, handle as never, 1, 32),
    }
    const copy = await secondCopy()
    const foreign = copy.Device.get(0)
    for (const [name, call] of Object.entries(calls)) {
      for (const bad of notKernels) {
        expect(() => call(device, bad)).toThrow(TypeError)
        expect(() => call(device, bad)).toThrow(`${name}: kernel must be a kernel or its handle, not `)
      }
      expect(() => call(device, -1n)).toThrow(RangeError)
      expect(() => call(device, gone)).toThrow(DisposedError)
      for (const bad of [undefined, 0, kernel]) {
        expect(() => call(bad, kernel)).toThrow(`${name}: owner must be a Device or a Context, not `)
      }
      expect(() => call(foreign, kernel)).toThrow(twoCopies)
    }
    foreign.dispose()
    expect(lastOccupancy().calls).toBe(before)
  })

  test("throws the driver's error", () => {
    expect(() => maxActiveBlocks(device, 0n, 32)).toThrow(StatusError)
    expect(() => maxActiveBlocks(device, 0n, 32)).toThrow(
      /^cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags failed: CUDA_ERROR_INVALID_VALUE/,
    )
  })
})

describe('availableSharedMemory', () => {
  test('passes kernel, blocks and threads, and returns bytes', () => {
    expect(availableSharedMemory(device, kernel, 3, 96)).toBe(76 * 1024 - 1024)
    expect(lastOccupancy()).toMatchObject({ kernel, blockCount: 3, blockSize: 96, calls: before + 1 })
    expect(availableSharedMemory(context, { handle: kernel }, 1, 1)).toBe(227 * 1024)
    expect(() => availableSharedMemory(device, kernel, 17, 96)).toThrow(
      /^cuOccupancyAvailableDynamicSMemPerBlock failed/,
    )
  })

  test.each([
    [0, 32, 'blockCount must be an integer from 1 to 2147483647, not 0'],
    [2 ** 31, 32, 'blockCount must be an integer from 1 to 2147483647, not 2147483648'],
    [1.5, 32, 'blockCount must be an integer from 1 to 2147483647, not 1.5'],
    [1, 0, 'blockSize must be an integer from 1 to 1024, not 0'],
    [1, 1025, 'blockSize must be an integer from 1 to 1024, not 1025'],
  ])('refuses %s blocks of %s threads', (blocks, threads, message) => {
    expect(() => availableSharedMemory(device, kernel, blocks, threads)).toThrow(`availableSharedMemory: ${message}`)
    expect(lastOccupancy().calls).toBe(before)
  })
})

/** Finds the same result by trying every size of whole warps, and the limit itself. */
function plainSearch(limit: number, bytesOf: (size: number) => number): { blockSize: number; minGridSize: number } {
  let best = { blockSize: 0, minGridSize: 0, threads: 0 }
  for (let size = 1; size <= limit; size += 1) {
    if (size % facts.warpSize !== 0 && size !== limit) continue
    const blocks = shimActiveBlocks(size, bytesOf(size))
    const threads = blocks * size
    if (threads > 0 && threads >= best.threads) {
      best = { blockSize: size, minGridSize: blocks * facts.multiprocessors, threads }
    }
  }
  return { blockSize: best.blockSize, minGridSize: best.minGridSize }
}

describe('searchBlockSize', () => {
  const search = (options: BlockSizeOptions = {}, own = facts) =>
    searchBlockSize(context, kernel, own, options, 'search')

  test('finds the same result as a plain search, with constant shared memory', () => {
    for (const limit of [1, 31, 32, 33, 100, 500, 768, 1000, 1024]) {
      for (const sharedMemory of [0, 1000, 20_000, 40_000, 116_000, 227 * 1024]) {
        expect(search({ blockSizeLimit: limit, sharedMemory }), `${limit} threads, ${sharedMemory} bytes`).toEqual(
          plainSearch(limit, () => sharedMemory),
        )
      }
    }
  })

  test('finds the same result as a plain search, with shared memory that depends on the size', () => {
    const kinds = [
      (size: number) => size * 300,
      (size: number) => 1000 + size * size,
      (size: number) => 200_000 - size * 100,
    ]
    for (const sharedMemory of kinds) expect(search({ sharedMemory })).toEqual(plainSearch(1024, sharedMemory))
    const asked: number[] = []
    search({ sharedMemory: (size) => asked.push(size) && 100_000, blockSizeLimit: 100 })
    expect(asked).toEqual([100, 96, 64, 32])
  })

  test('stops at the first size that fills the multiprocessor', () => {
    expect(search()).toEqual({ blockSize: 1024, minGridSize: 14 })
    expect(lastOccupancy()).toMatchObject({ kernel, blockSize: 1024, calls: before + 1 })
  })

  test('never considers more threads than the kernel supports', () => {
    const own = { ...facts, maxThreadsPerBlock: 200 }
    expect(search({ blockSizeLimit: 1024 }, own)).toEqual(plainSearch(200, () => 0))
    expect(search({ blockSizeLimit: 2 ** 40, disableCachingOverride: true }, own).blockSize).toBeLessThanOrEqual(200)
    expect(lastOccupancy().flags).toBe(1)
  })

  test('returns 0 if no block fits', () => {
    expect(search({ sharedMemory: 300_000 })).toEqual({ blockSize: 0, minGridSize: 0 })
  })

  test.each([
    [
      { limit: 5 },
      TypeError,
      "options must have only the keys sharedMemory, disableCachingOverride, blockSizeLimit, not 'l",
    ],
    [null, TypeError, 'options must be a plain object such as { sharedMemory, disableCachingOverride, block'],
    [{ blockSizeLimit: 0 }, RangeError, 'blockSizeLimit must be an integer from 1 to 2^53 - 1, not 0'],
    [{ blockSizeLimit: '32' }, TypeError, 'blockSizeLimit must be '],
    [{ sharedMemory: -1 }, RangeError, 'sharedMemory must be '],
    [{ sharedMemory: () => 0.5 }, TypeError, 'sharedMemory must be '],
    [{ sharedMemory: () => undefined }, TypeError, 'sharedMemory must be '],
    [{ disableCachingOverride: 'no' }, TypeError, 'disableCachingOverride must be a boolean'],
  ])('refuses the options %o', (options, kind, message) => {
    expect(() => search(options as never)).toThrow(kind)
    expect(() => search(options as never)).toThrow(`search: ${message}`)
    expect(lastOccupancy().calls).toBe(before)
  })

  test("rethrows an error thrown by the program's function", () => {
    const failure = new Error('of the program')
    const sharedMemory = (): never => {
      throw failure
    }
    expect(() => search({ sharedMemory })).toThrow(failure)
    expect(() => search(throwing('blockSizeLimit'))).toThrow('thrown by a getter')
    expect(lastOccupancy().calls).toBe(before)
  })
})
