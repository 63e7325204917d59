import { setTimeout as sleep } from 'node:timers/promises'
import type { DeviceBuffer as Buffer } from '@shoal/driver/shared'
import { StatusError } from '@shoal/types'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'

// Tests the source from which a caching pool allocates and to which it frees memory.
const mebibyte = 2 ** 20
const deviceBytes = 256 * mebibyte
Object.assign(process.env, {
  SHOAL_DEVICE: 'sim',
  SHOAL_SIM_DEVICES: '2',
  SHOAL_SIM_MEMORY_BYTES: String(deviceBytes),
})
const { CachingPool, DeviceBuffer, Event, hasReleases, MemoryPool, Stream } = await import('@shoal/driver/shared')
const { TestDevice, delay } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const stream = Stream.create(device)
const other = Stream.create(device)

afterAll(() => {
  stream.dispose()
  other.dispose()
})

beforeEach(async () => {
  while (hasReleases()) await sleep(1)
  expect([device.used, second.used]).toEqual([0, 0])
})

type Pool = ReturnType<typeof CachingPool.create>

describe('CachingPool.trim', () => {
  const fill = (pool: Pool): void => {
    const buffers = [12, 30, 50].map((size) => pool.allocate(stream, 'u8', size * mebibyte))
    for (const buffer of buffers) buffer.dispose()
  }

  test.each(['trim', 'trimSync'] as const)('%s returns all unused memory', async (name) => {
    using pool = CachingPool.create(device)
    fill(pool)
    using kept = pool.allocate(stream, 'u8', 1000)
    expect(pool.reserved.current).toBe(94 * mebibyte)
    expect(await pool[name]()).toBe(92 * mebibyte)
    expect([pool.reserved, device.used]).toEqual([{ current: 2 * mebibyte, high: 94 * mebibyte }, 2 * mebibyte])
    expect(await pool[name]()).toBe(0)
    expect(kept.fillSync(3, { stream }).toArraySync({ stream })).toEqual(new Uint8Array(1000).fill(3))
    pool.resetHighWaterMarks()
    expect([pool.reserved.high, pool.used.high]).toEqual([2 * mebibyte, 1024])
  })

  test('keeps the requested number of bytes, preferring smaller pieces', async () => {
    using pool = CachingPool.create(device)
    fill(pool)
    expect(await pool.trim(50 * mebibyte)).toBe(50 * mebibyte)
    expect(pool.trimSync(42 * mebibyte)).toBe(0)
    expect(pool.reserved.current).toBe(42 * mebibyte)
  })

  test('does not block the event loop while the device works', async () => {
    using pool = CachingPool.create(device)
    fill(pool)
    delay(stream, 50)
    let turns = 0
    const ticking = setInterval(() => (turns += 1), 1)
    await pool.trim()
    clearInterval(ticking)
    expect(turns).toBeGreaterThan(0)
  })

  test('trimSync waits for other streams that still use memory', () => {
    using pool = CachingPool.create(device)
    const buffer = pool.allocate(stream, 'u8', 100)
    delay(other, 20)
    buffer.disposeOn(other)
    expect(pool.trimSync()).toBe(2 * mebibyte)
    expect(other.query()).toBe(true)
  })

  test('refuses wrong numbers', async () => {
    using pool = CachingPool.create(device)
    await expect(pool.trim(-1)).rejects.toThrow('CachingPool.trim: bytesToKeep must be an integer from 0')
    expect(() => pool.trimSync(1.5)).toThrow('CachingPool.trimSync: bytesToKeep must be an integer from 0')
  })
})

describe('pool memory that is still in use', () => {
  /** A source that records, at each free, whether a stream's work was complete. */
  function watched(isOver: () => boolean) {
    const freedAfterWork: boolean[] = []
    const memory = new Map<bigint, Buffer<'u8'>>()
    const source = {
      allocate: (byteLength: number): bigint => {
        const buffer = DeviceBuffer.allocate(device, 'u8', byteLength)
        memory.set(buffer.address, buffer)
        return buffer.address
      },
      free: (address: bigint): void => {
        freedAfterWork.push(isOver())
        memory.get(address)?.dispose()
      },
    }
    return { source, freedAfterWork }
  }

  test.each(['trim', 'trimSync'] as const)(
    '%s() waits for the stream before it frees memory into its source',
    async (name) => {
      const { source, freedAfterWork } = watched(() => stream.query())
      using pool = CachingPool.create(device, { source })
      const buffer = pool.allocate(stream, 'u8', 100)
      delay(stream, 30)
      buffer.fill(1, { stream }).dispose()
      expect(await pool[name]()).toBe(2 * mebibyte)
      expect(freedAfterWork).toEqual([true])
    },
  )

  test('trim() does not block the event loop while it waits to free memory into its source', async () => {
    const { source, freedAfterWork } = watched(() => stream.query())
    using pool = CachingPool.create(device, { source })
    const buffer = pool.allocate(stream, 'u8', 100)
    delay(stream, 50)
    buffer.dispose()
    let turns = 0
    const ticking = setInterval(() => (turns += 1), 1)
    await pool.trim()
    clearInterval(ticking)
    expect([freedAfterWork, turns > 0]).toEqual([[true], true])
  })

  test('memory of a disposed stream is freed into its source after the work of that stream', async () => {
    const gone = Stream.create(device, { nonBlocking: true })
    using ended = Event.create(device)
    const { source, freedAfterWork } = watched(() => ended.query())
    using pool = CachingPool.create(device, { source })
    const buffer = pool.allocate(gone, 'u8', 100)
    delay(gone, 30)
    buffer.fill(1, { stream: gone }).dispose()
    ended.record(gone)
    gone.dispose()
    pool.allocate(stream, 'u8', 100).dispose()
    while (freedAfterWork.length === 0) await sleep(1)
    expect(freedAfterWork).toEqual([true])
    await pool.trim() // while its source can still query the event
  })

  test('memory still used by a disposed stream is reused only after its work completes', async () => {
    using pool = CachingPool.create(device)
    const gone = Stream.create(device, { nonBlocking: true })
    const ended = Event.create(device)
    const first = pool.allocate(stream, 'u8', 4096)
    const { address } = first
    pool.recordUse(first, gone)
    delay(gone, 30)
    ended.record(gone)
    gone.dispose()
    first.dispose()
    const next = pool.allocate(stream, 'u8', 4096)
    expect(next.address !== address || ended.query()).toBe(true)
    next.dispose()
    await ended.synchronize()
    ended.dispose()
  })
})

describe('when device memory runs out', () => {
  test('the pool frees unused memory and retries the request', () => {
    using pool = CachingPool.create(device)
    pool.allocate(stream, 'u8', 200 * mebibyte).dispose()
    using next = pool.allocate(stream, 'u8', 220 * mebibyte)
    expect([next.length, pool.statistics.retries, device.used]).toEqual([220 * mebibyte, 1, 220 * mebibyte])
  })

  test("and the retry fails too, the error is the driver's, and pooled memory stays usable", () => {
    using pool = CachingPool.create(device)
    using kept = pool.allocate(stream, 'u8', 100 * mebibyte)
    const tooMuch = (): unknown => pool.allocate(stream, 'u8', 200 * mebibyte)
    expect(tooMuch).toThrow(StatusError)
    expect(tooMuch).toThrow(/cuMemAlloc.*CUDA_ERROR_OUT_OF_MEMORY/)
    expect(pool.used.current).toBe(100 * mebibyte)
    kept.fillSync(1)
  })

  test('other allocations on the device also receive the unused memory', () => {
    using pool = CachingPool.create(device)
    using plain = MemoryPool.create(device)
    const take = (): void => pool.allocate(stream, 'u8', 200 * mebibyte).dispose()
    take()
    DeviceBuffer.allocate(device, 'u8', 220 * mebibyte).dispose()
    take()
    DeviceBuffer.allocateOn(stream, 'u8', 220 * mebibyte).dispose()
    stream.synchronizeSync()
    MemoryPool.defaultOf(device).trimTo(0)
    take()
    plain.allocate(stream, 'u8', 220 * mebibyte).dispose()
    stream.synchronizeSync()
    plain.trimTo(0)
    expect(pool.statistics.retries).toBe(3)
  })

  test('the pool waits for memory that other streams still use', () => {
    using pool = CachingPool.create(device)
    const buffer = pool.allocate(stream, 'u8', 200 * mebibyte)
    delay(other, 20)
    buffer.disposeOn(other)
    using next = pool.allocate(stream, 'u8', 220 * mebibyte)
    expect([next.length, other.query()]).toEqual([220 * mebibyte, true])
  })

  test('maximumBytes limits the pool alone', () => {
    using pool = CachingPool.create(device, { maximumBytes: 4 * mebibyte })
    pool.allocate(stream, 'u8', 1).dispose()
    using one = pool.allocate(other, 'u8', 1)
    using two = pool.allocate(stream, 'u8', 2)
    expect([one.length, two.length, pool.reserved.current]).toEqual([1, 2, 4 * mebibyte])
    expect(() => pool.allocate(stream, 'u8', 2 * mebibyte)).toThrow(
      /CUDA_ERROR_OUT_OF_MEMORY.*the pool may have 4194304 bytes at most; 1024 of them are in use/s,
    )
    two.dispose()
    // Memory is too short for a shared segment of 20 MiB.
    using third = pool.allocate(other, 'u8', 2 * mebibyte - 512)
    expect([third.length, pool.reserved.current]).toEqual([2 * mebibyte - 512, 4 * mebibyte])
  })
})

describe('a memory source from the program', () => {
  test('provides segments, and receives them back after the device completes its work', async () => {
    const given: string[] = []
    const source = {
      buffers: new Map<bigint, Buffer<'u8'>>(),
      allocate(byteLength: number): bigint {
        const buffer = DeviceBuffer.allocate(device, 'u8', byteLength)
        this.buffers.set(buffer.address, buffer)
        given.push(`allocate ${byteLength}`)
        return buffer.address
      },
      free(address: bigint, byteLength: number): void {
        given.push(`free ${byteLength}, ${stream.query() ? 'idle' : 'at work'}`)
        this.buffers.get(address)?.dispose()
        this.buffers.delete(address)
      },
    }
    using pool = CachingPool.create(device, { source })
    for (const trim of ['trim', 'trimSync'] as const) {
      const buffer = pool.allocate(stream, 'u8', 100)
      delay(stream, 20)
      buffer.fill(1, { stream }).dispose()
      expect(await pool[trim]()).toBe(2 * mebibyte)
    }
    expect(given).toEqual([0, 1].flatMap(() => [`allocate ${2 * mebibyte}`, `free ${2 * mebibyte}, idle`]))
  })

  test('its error reaches the caller after a retry with unused memory freed and a retry with a smaller size', () => {
    let isEmpty = false
    let asked = 0
    const buffers: Buffer<'u8'>[] = []
    const source = {
      allocate(byteLength: number): bigint {
        asked += 1
        if (isEmpty) throw new Error('nothing left')
        const buffer = DeviceBuffer.allocate(device, 'u8', byteLength)
        buffers.push(buffer)
        return buffer.address
      },
      free: (): void => buffers.pop()?.dispose(),
    }
    using pool = CachingPool.create(device, { source })
    pool.allocate(stream, 'u8', 1).dispose()
    isEmpty = true
    expect(() => pool.allocate(stream, 'u8', 5 * mebibyte)).toThrow('nothing left')
    expect(() => pool.allocate(stream, 'u8', 5 * mebibyte)).toThrow('nothing left')
    expect([asked, pool.reserved.current, pool.statistics.misses]).toEqual([6, 0, 1])
  })
})

describe('Device.allocator', () => {
  test('provides the memory of allocateOn', () => {
    using pool = CachingPool.create(device)
    expect(device.allocator).toBeUndefined()
    device.allocator = pool
    expect(device.allocator).toBe(pool)
    using buffer = DeviceBuffer.allocateOn(stream, 'f32', 100)
    expect([buffer.length, pool.used.current]).toEqual([100, 512])
    using elsewhere = Stream.create(second)
    using notFrom = DeviceBuffer.allocateOn(elsewhere, 'f32', 100)
    expect([notFrom.device, pool.statistics.allocations]).toEqual([second, 1])
    pool.dispose()
    expect(device.allocator).toBeUndefined()
    notFrom.dispose()
    elsewhere.synchronizeSync()
    MemoryPool.defaultOf(second).trimTo(0)
  })

  test('may be an object of the program that itself allocates from the device pool', () => {
    const sizes: number[] = []
    device.allocator = {
      allocate(on, dtype, length) {
        sizes.push(length)
        return DeviceBuffer.allocateOn(on, dtype, length)
      },
    }
    try {
      for (const length of [10, 20]) DeviceBuffer.allocateOn(stream, 'u8', length).dispose()
      expect(sizes).toEqual([10, 20])
    } finally {
      device.allocator = undefined
    }
    stream.synchronizeSync()
    MemoryPool.defaultOf(device).trimTo(0)
  })

  test('must return a buffer of the requested size and type', () => {
    using wrong = DeviceBuffer.allocate(device, 'u8', 5)
    for (const given of [undefined, {}, wrong]) {
      device.allocator = { allocate: () => given as never }
      expect(() => DeviceBuffer.allocateOn(stream, 'u8', 10)).toThrow(
        'DeviceBuffer.allocateOn: what the allocator gives must be a DeviceBuffer of 10 elements of type u8',
      )
    }
    const thrown = new Error('of the program')
    device.allocator = {
      allocate() {
        throw thrown
      },
    }
    expect(() => DeviceBuffer.allocateOn(stream, 'u8', 10)).toThrow(thrown)
    expect(device.allocator).toBeDefined()
    device.allocator = undefined
  })

  test.each([5, {}, null])('refuses %o', (value) => {
    expect(() => {
      device.allocator = value as never
    }).toThrow('Device.allocator: allocator must be a pool, or an object with the function allocate')
  })
})
