import { inspect } from 'node:util'
import { defineStruct, memoryProtocol } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compile, lastLaunch, lastOccupancy, shimActiveBlocks, shimEnvironment } from './support/shim.js'

const shim = compile('kernelShim')
Object.assign(process.env, shimEnvironment(shim), { SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, DisposedError, Module } = await import('@shoal/driver')

const good = { grid: 1, block: 32 }
let device: import('@shoal/driver').Device
let module: import('@shoal/driver').Module

beforeAll(() => {
  device = Device.get(0)
  module = Module.loadSync(device, '.version 8.0')
})

afterAll(() => {
  module.dispose()
})

describe('Kernel.launch', () => {
  test('runs axpy on the given stream', async () => {
    const axpy = module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
    const stream = device.createStream({ nonBlocking: true })
    const x = DeviceBuffer.from(
      device,
      Float32Array.from({ length: 1003 }, (_, index) => index),
    )
    const y = DeviceBuffer.from(device, new Float32Array(1003).fill(1))
    axpy.launch({ grid: 4, block: 256, stream }, 2, x, y, 1003)
    const result = await y.toArray({ stream })
    expect(result).toEqual(Float32Array.from({ length: 1003 }, (_, index) => 2 * index + 1))
    for (const object of [x, y, stream]) object.dispose()
  })

  test('passes grid, block, shared memory and stream', () => {
    const kernel = module.kernel('args_4', ['i32'])
    using stream = device.createStream()
    kernel.launch({ grid: [5, 6, 7], block: [8, 4], sharedMemory: 1024, stream }, 1)
    expect(lastLaunch()).toMatchObject({ grid: [5, 6, 7], block: [8, 4, 1], sharedMemory: 1024, stream: stream.handle })
    kernel.launch({ grid: 9, block: 10 }, 1)
    expect(lastLaunch()).toMatchObject({ grid: [9, 1, 1], block: [10, 1, 1], sharedMemory: 0, stream: 0n })
    kernel.launch({ grid: [2 ** 31 - 1, 65535, 65535], block: [1, 2, 64] }, 1)
    expect(lastLaunch()).toMatchObject({ grid: [2 ** 31 - 1, 65535, 65535], block: [1, 2, 64] })
  })

  test('uses the sizes of each launch, also after a launch that was refused halfway', () => {
    const kernel = module.kernel('args_4', ['i32'])
    kernel.launch({ grid: 9, block: 10 }, 1)
    expect(() => kernel.launch({ grid: [5, 0], block: 10 }, 1)).toThrow('Kernel.launch: grid[1] must be')
    kernel.launch({ grid: 9, block: 10 }, 1)
    expect(lastLaunch()).toMatchObject({ grid: [9, 1, 1], block: [10, 1, 1] })
    expect(() => kernel.launch({ grid: 9, block: [16, 16, 16] }, 1)).toThrow('Kernel.launch: block must be at most')
    kernel.launch({ grid: [9, 2], block: 10 }, 1)
    expect(lastLaunch()).toMatchObject({ grid: [9, 2, 1], block: [10, 1, 1] })
  })

  test('keeps its arguments if one of their getters launches the same kernel', () => {
    const kernel = module.kernel('args_4_8_4', ['i32', 'ptr', 'i32'])
    using inner = DeviceBuffer.allocate(device, 'f32', 4)
    const nested = {
      get [memoryProtocol]() {
        kernel.launch({ grid: 3, block: 64 }, 7, null, 8)
        return inner[memoryProtocol]
      },
    }
    kernel.launch({ grid: 2, block: 32 }, 1, nested, 2)
    const { arguments: bytes, grid } = lastLaunch()
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    expect([view.getInt32(0, true), view.getBigUint64(4, true), view.getInt32(12, true), grid[0]]).toEqual([
      1,
      inner.address,
      2,
      2,
    ])
  })

  test('opts in above 48 KiB of shared memory, up to the device limit', () => {
    const kernel = module.kernel('args_4', ['i32'])
    const most = device.attribute('MAX_SHARED_MEMORY_PER_BLOCK_OPTIN') - 256
    expect(most).toBeGreaterThan(48 * 1024)
    kernel.launch({ ...good, sharedMemory: most }, 1)
    expect(lastLaunch().sharedMemory).toBe(most)
    expect(kernel.attribute('MAX_DYNAMIC_SHARED_SIZE_BYTES')).toBe(most)
    expect(() => kernel.launch({ ...good, sharedMemory: most + 1 }, 1)).toThrow(RangeError)
    expect(() => kernel.prepare({ ...good, sharedMemory: most + 1 }, 1)).toThrow(
      `Kernel.prepare: sharedMemory must be at most ${most}, what device 0 has for this kernel besides its 256 static`,
    )
  })

  test('refuses more threads than the kernel supports', () => {
    const kernel = module.kernel('args_4', ['i32'])
    expect(kernel.maxThreadsPerBlock).toBe(512)
    expect(() => kernel.launch({ grid: 1, block: 513 }, 1)).toThrow(
      new RangeError('Kernel.launch: block must be at most 512 threads, which is what this kernel can have, not 513'),
    )
    expect(() => kernel.launch({ grid: 1, block: [32, 32] }, 1)).toThrow(RangeError)
  })

  test.each([
    [{ ...good, grid: 0 }, RangeError],
    [{ ...good, grid: -1 }, RangeError],
    [{ ...good, grid: 2 ** 31 }, RangeError],
    [{ ...good, grid: Number.POSITIVE_INFINITY }, RangeError],
    [{ ...good, grid: [1, 65536] as const }, RangeError],
    [{ ...good, grid: Number.NaN }, TypeError],
    [{ ...good, grid: 1.5 }, TypeError],
    [{ ...good, grid: '1' as unknown as number }, TypeError],
    [{ ...good, grid: [] as unknown as number }, TypeError],
    [{ ...good, grid: [1, 1, 1, 1] as unknown as number }, TypeError],
    [{ ...good, grid: undefined as unknown as number }, TypeError],
    [{ ...good, block: 0 }, RangeError],
    [{ ...good, block: [1, 1, 65] as const }, RangeError],
    [{ ...good, sharedMemory: -1 }, RangeError],
    [{ ...good, sharedMemory: Number.NaN }, TypeError],
    [{ ...good, stream: {} as never }, TypeError],
    [{ ...good, sharedBytes: 1024 } as typeof good, TypeError],
    [{ ...good, sharedMemory: 1024, stream: undefined, streams: 1 } as typeof good, TypeError],
    [{ grid: 1, threads: 32 } as unknown as typeof good, TypeError],
    [Object.assign(Object.create({ blocks: 1 }), good), TypeError],
    [
      new (class Config {
        readonly grid = 1
        readonly block = 32
      })(),
      TypeError,
    ],
    [undefined as unknown as typeof good, TypeError],
    [null as unknown as typeof good, TypeError],
    [5 as unknown as typeof good, TypeError],
    [[1, 32] as unknown as typeof good, TypeError],
    [{} as typeof good, TypeError],
  ])('refuses %o before the driver call', (config, kind) => {
    const kernel = module.kernel('args_4', ['i32'])
    const { launches } = lastLaunch()
    expect(() => kernel.launch(config, 1)).toThrow(kind)
    expect(() => kernel.prepare(config, 1)).toThrow(kind)
    expect(lastLaunch().launches).toBe(launches)
  })

  test('names an unknown key, even if the same object was launched with before', () => {
    const kernel = module.kernel('args_4', ['i32'])
    const refusal = 'config must have only the keys grid, block, sharedMemory, stream, not '
    const launch = (config: object) => () => kernel.launch(config as typeof good, 1)
    expect(launch({ ...good, sharedBytes: 1024 })).toThrow(new TypeError(`Kernel.launch: ${refusal}'sharedBytes'`))
    expect(() => kernel.prepare({ ...good, threads: 1 } as typeof good, 1)).toThrow(
      `Kernel.prepare: ${refusal}'threads'`,
    )
    const config: Record<string, unknown> = { ...good }
    launch(config)()
    config['sharedBytes'] = 1024
    expect(launch(config)).toThrow(`Kernel.launch: ${refusal}'sharedBytes'`)
  })

  test.each([
    ['block', { grid: 1, blocks: 32 }],
    ['grid', { gird: 1, block: 32 }],
    ['a key that is undefined', { grid: 1, block: 32, stream: undefined, blocks: 32 }],
    ['block, with another one', { grid: 1, sharedMemory: 64, blocks: 32 }],
  ])('names an unknown key used instead of %s', (_, config) => {
    const kernel = module.kernel('args_4', ['i32'])
    kernel.launch({ grid: 1, block: 32 }, 1)
    expect(() => kernel.launch(config as unknown as typeof good, 1)).toThrow(
      /config must have only the keys .*, not '(?:blocks|gird)'; did you mean '(?:block|grid)'\?$/,
    )
  })

  test('ignores undefined keys, and accepts objects without a prototype', () => {
    const kernel = module.kernel('args_4', ['i32'])
    const { launches } = lastLaunch()
    kernel.launch({ ...good, sharedMemory: undefined, stream: undefined }, 1)
    kernel.launch(Object.assign(Object.create(null), good), 1)
    expect(lastLaunch().launches).toBe(launches + 2)
  })

  test('rethrows an error thrown by a getter of the configuration, and launches nothing', () => {
    const kernel = module.kernel('args_4', ['i32'])
    const { launches } = lastLaunch()
    const thrown = new Error('from the getter')
    const config = {
      ...good,
      get stream(): never {
        throw thrown
      },
    }
    expect(() => kernel.launch(config, 1)).toThrow(thrown)
    expect(lastLaunch().launches).toBe(launches)
    kernel.launch(good, 7)
    expect([...lastLaunch().arguments]).toEqual([7, 0, 0, 0])
  })
})

describe('occupancy of a Kernel', () => {
  test('maxActiveBlocks asks the driver about this kernel', () => {
    const kernel = module.kernel('args_4', ['i32'])
    const options = { sharedMemory: 50_000, disableCachingOverride: true }
    expect(kernel.maxActiveBlocks(96, options)).toBe(shimActiveBlocks(96, 50_000))
    expect(lastOccupancy()).toMatchObject({ kernel: kernel.handle, blockSize: 96, sharedMemory: 50_000, flags: 1 })
    expect(kernel.maxActiveBlocks(512)).toBe(4)
    expect(lastOccupancy()).toMatchObject({ blockSize: 512, sharedMemory: 0, flags: 0 })
  })

  test('availableSharedMemory asks for blocks of a given size', () => {
    const kernel = module.kernel('args_4', ['i32'])
    expect(kernel.availableSharedMemory(4, 128)).toBe(56 * 1024)
    expect(lastOccupancy()).toMatchObject({ kernel: kernel.handle, blockCount: 4, blockSize: 128 })
    expect(() => kernel.availableSharedMemory(17, 128)).toThrow(/^cuOccupancyAvailableDynamicSMemPerBlock failed/)
  })

  test("potentialBlockSize considers all sizes up to the kernel's limit, on all multiprocessors", () => {
    const kernel = module.kernel('args_4', ['i32'])
    const multiprocessors = device.attribute('MULTIPROCESSOR_COUNT')
    // The kernel has at most 512 threads per block.
    expect(kernel.potentialBlockSize()).toEqual({ blockSize: 512, minGridSize: 4 * multiprocessors })
    const { blockSize, minGridSize } = kernel.potentialBlockSize({ sharedMemory: (threads) => threads * 300 })
    expect(minGridSize).toBe(kernel.maxActiveBlocks(blockSize, { sharedMemory: blockSize * 300 }) * multiprocessors)
    expect(kernel.potentialBlockSize({ blockSizeLimit: 64 })).toEqual({
      blockSize: 64,
      minGridSize: 16 * multiprocessors,
    })
  })

  test('refuses impossible sizes by method name, before the driver call', () => {
    const kernel = module.kernel('args_4', ['i32'])
    const { calls } = lastOccupancy()
    for (const size of [0, 1025, -1]) {
      expect(() => kernel.maxActiveBlocks(size)).toThrow(
        new RangeError(`Kernel.maxActiveBlocks: blockSize must be an integer from 1 to 1024, not ${size}`),
      )
    }
    expect(() => kernel.maxActiveBlocks(32, { shared: 1 } as never)).toThrow(
      new TypeError(
        "Kernel.maxActiveBlocks: options must have only the keys sharedMemory, disableCachingOverride, not 'shared'; did you mean 'sharedMemory'?",
      ),
    )
    expect(() => kernel.availableSharedMemory(0, 32)).toThrow(/^Kernel\.availableSharedMemory: blockCount must be /)
    expect(() => kernel.potentialBlockSize({ blockSizeLimit: 0 })).toThrow(
      /^Kernel\.potentialBlockSize: blockSizeLimit must be /,
    )
    expect(() => kernel.potentialBlockSize(5 as never)).toThrow(TypeError)
    expect(lastOccupancy().calls).toBe(calls)
  })

  test('is refused after the module was disposed', () => {
    const own = Module.loadSync(device, '.version 8.0')
    const kernel = own.kernel('args_4', ['i32'])
    own.dispose()
    expect(() => kernel.maxActiveBlocks(32)).toThrow(DisposedError)
    expect(() => kernel.availableSharedMemory(1, 32)).toThrow(DisposedError)
    expect(() => kernel.potentialBlockSize()).toThrow(DisposedError)
  })
})

describe('a Kernel', () => {
  test('returns its attributes by name', () => {
    const kernel = module.kernel('args_4', ['i32'])
    expect(kernel.attribute('SHARED_SIZE_BYTES')).toBe(256)
    for (const name of ['REGISTERS', '', 5, Symbol('NUM_REGS'), Object.create(null), undefined]) {
      expect(() => kernel.attribute(name as 'NUM_REGS')).toThrow(/^Kernel\.attribute: attribute must be /)
    }
  })

  test('is printed in one line, also after its module was disposed', () => {
    const own = Module.loadSync(device, '.version 8.0')
    const Aligned = defineStruct('Aligned', { x: 'f32', y: 'f32', z: 'f32' }, { align: 16 })
    const kernel = own.kernel('args_4_8_16', ['i32', 'ptr', Aligned])
    expect(inspect(kernel)).toBe("Kernel { name: 'args_4_8_16', parameters: 'i32, ptr, Aligned' }")
    own.dispose()
    expect(inspect(kernel)).toBe("Kernel { name: 'args_4_8_16', parameters: 'i32, ptr, Aligned' }")
    expect(String(kernel)).toBe('[object Kernel]')
  })

  test('is refused after its module was disposed', () => {
    const own = Module.loadSync(device, '.version 8.0')
    const kernel = own.kernel('args_4', ['i32'])
    own.dispose()
    expect(() => kernel.launch(good, 1)).toThrow(DisposedError)
    expect(() => kernel.prepare(good, 1)).toThrow(DisposedError)
    expect(() => kernel.attribute('NUM_REGS')).toThrow(DisposedError)
    expect(() => kernel.handle).toThrow(DisposedError)
  })
})
