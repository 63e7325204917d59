import { execFileSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runtime } from '@shoal/cuda-sys/runtime'
import { readMemory } from '@shoal/ffi'
import { bindBigCall } from '@shoal/ffi/calls'
import { DisposedError, StatusError } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

const platform = `${process.platform}-${process.arch}`
const library = fileURLToPath(new URL(`../../sim/prebuilds/${platform}/libshoal-sim-cudart.so.13`, import.meta.url))
const source = fileURLToPath(new URL('native/occupancyShim.c', import.meta.url))
const shim = join(scratchFolder(), 'occupancyShim.so')
const flags = ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', `-Wl,-rpath,${dirname(library)}`]
execFileSync(process.env['CC'] ?? 'cc', [...flags, '-o', shim, source, library])

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2', SHOAL_CUDART_LIBRARY: shim })
const { availableSharedMemory, currentDevice, Device, maxActiveBlocks, setDevice } = await import('@shoal/runtime')

/** A `cudaKernel_t`. */
const kernel = 0x1234_5678_9abcn
let before = 0

function last() {
  const address = runtime.rawSymbol('shimLastOccupancy')
  if (address === undefined) throw new Error('the shim is not in use')
  const view = new DataView(readMemory(bindBigCall(address, 0, 'pointer', 'shimLastOccupancy')(), 40).buffer)
  return {
    kernel: view.getBigUint64(0, true),
    sharedMemory: Number(view.getBigUint64(8, true)),
    blockCount: view.getUint32(16, true),
    blockSize: view.getUint32(20, true),
    flags: view.getUint32(24, true),
    device: view.getUint32(28, true),
    calls: view.getUint32(32, true),
  }
}

beforeEach(() => {
  currentDevice()
  before = last().calls
})

const gone = {
  get handle(): bigint {
    throw new DisposedError('Kernel')
  },
}

describe('maxActiveBlocks', () => {
  test('asks libcudart about the kernel on the current device', () => {
    expect(maxActiveBlocks(kernel, 256)).toBe(8)
    expect(last()).toEqual({
      kernel,
      sharedMemory: 0,
      blockCount: 0,
      blockSize: 256,
      flags: 0,
      device: 0,
      calls: before + 1,
    })
    setDevice(1)
    expect(maxActiveBlocks({ handle: kernel }, 512, { sharedMemory: 2 ** 33, disableCachingOverride: true })).toBe(4)
    expect(last()).toMatchObject({ kernel, sharedMemory: 2 ** 33, blockSize: 512, flags: 1, device: 1 })
    setDevice(0)
  })

  test('accepts another device as an option without making it current', () => {
    for (const device of [1, Device.get(1)]) {
      expect(maxActiveBlocks(kernel, 1024, { device })).toBe(2)
      expect(last()).toMatchObject({ device: 1, calls: expect.any(Number) })
      expect(currentDevice().ordinal).toBe(0)
    }
  })

  test.each([
    [{ shared: 1 }, "options must have only the keys sharedMemory, disableCachingOverride, not 'shared'"],
    [null, 'options must be a plain object such as { device }, not null'],
    [new (class Options {})(), 'options must be a plain object such as { device }, not an object of class Options'],
    [{ sharedMemory: '1' }, 'sharedMemory must be '],
    [{ disableCachingOverride: 0 }, 'disableCachingOverride must be a boolean, not 0'],
  ])('refuses the options %o', (options, message) => {
    expect(() => maxActiveBlocks(kernel, 32, options as never)).toThrow(TypeError)
    expect(() => maxActiveBlocks(kernel, 32, options as never)).toThrow(`maxActiveBlocks: ${message}`)
    expect(last().calls).toBe(before)
  })

  test('refuses impossible sizes, wrong kernels and disposed kernels before the call', () => {
    for (const size of [0, 1025, Number.POSITIVE_INFINITY]) {
      expect(() => maxActiveBlocks(kernel, size)).toThrow(
        new RangeError(`maxActiveBlocks: blockSize must be an integer from 1 to 1024, not ${size}`),
      )
    }
    for (const bad of [undefined, null, 5, 'axpy', {}]) {
      expect(() => maxActiveBlocks(bad as never, 32)).toThrow(/^maxActiveBlocks: kernel must be a kernel or its handle/)
    }
    expect(() => maxActiveBlocks(-1n, 32)).toThrow(RangeError)
    expect(() => maxActiveBlocks(gone, 32)).toThrow(DisposedError)
    expect(() => maxActiveBlocks(kernel, 32, { device: 2 })).toThrow(RangeError)
    expect(last().calls).toBe(before)
  })

  test("throws libcudart's error", () => {
    expect(() => maxActiveBlocks(0n, 32)).toThrow(StatusError)
    expect(() => maxActiveBlocks(0n, 32)).toThrow(
      /^cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags failed: cudaErrorInvalidValue/,
    )
  })
})

describe('availableSharedMemory', () => {
  test('asks libcudart about the kernel on the given or the current device', () => {
    expect(availableSharedMemory(kernel, 4, 96)).toBe(16_384)
    expect(last()).toMatchObject({ kernel, blockCount: 4, blockSize: 96, device: 0, calls: before + 1 })
    expect(availableSharedMemory({ handle: kernel }, 1, 32, { device: 1 })).toBe(65_536)
    expect(last().device).toBe(1)
    expect(currentDevice().ordinal).toBe(0)
    expect(() => availableSharedMemory(0n, 1, 32)).toThrow(
      /^cudaOccupancyAvailableDynamicSMemPerBlock failed: cudaErrorInvalidValue/,
    )
  })

  test('refuses impossible arguments before the call', () => {
    expect(() => availableSharedMemory(kernel, 0, 32)).toThrow(
      new RangeError('availableSharedMemory: blockCount must be an integer from 1 to 2147483647, not 0'),
    )
    expect(() => availableSharedMemory(kernel, 1, 1025)).toThrow(/^availableSharedMemory: blockSize must be /)
    expect(() => availableSharedMemory({} as never, 1, 32)).toThrow(/^availableSharedMemory: kernel must be /)
    expect(() => availableSharedMemory(gone, 1, 32)).toThrow(DisposedError)
    expect(() => availableSharedMemory(kernel, 1, 32, { sharedMemory: 1 } as never)).toThrow(
      new TypeError("availableSharedMemory: options must have only the keys device, not 'sharedMemory'"),
    )
    expect(() => availableSharedMemory(kernel, 1, 32, null as never)).toThrow(TypeError)
    expect(last().calls).toBe(before)
  })
})
