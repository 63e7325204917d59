import { inspect } from 'node:util'
import type { DeviceBuffer as Buffer, Stream as StreamOf } from '@shoal/driver/shared'
import { DisposedError, StatusError } from '@shoal/types'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { randomInteger } from './support/elements.js'

const mebibyte = 2 ** 20
const deviceBytes = 256 * mebibyte
Object.assign(process.env, {
  SHOAL_DEVICE: 'sim',
  SHOAL_SIM_DEVICES: '2',
  SHOAL_SIM_MEMORY_BYTES: String(deviceBytes),
})
const { CachingPool, DeviceBuffer, Stream } = await import('@shoal/driver/shared')
const { TestDevice, delay, injectError } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const stream = Stream.create(device)
const other = Stream.create(device)

afterAll(() => {
  stream.dispose()
  other.dispose()
})

beforeEach(() => {
  expect([device.used, second.used]).toEqual([0, 0])
})

describe('CachingPool.create', () => {
  test('makes an empty pool for a Device or its Context', () => {
    for (const owner of [second, second.primaryContext]) {
      using pool = CachingPool.create(owner)
      expect([pool.device, pool.context]).toEqual([second, second.primaryContext])
      expect([pool.used, pool.reserved]).toEqual([
        { current: 0, high: 0 },
        { current: 0, high: 0 },
      ])
      expect(pool.statistics).toEqual({ allocations: 0, misses: 0, retries: 0, waitingBytes: 0 })
    }
    using ofDevice = device.createCachingPool({ maximumBytes: 4 * mebibyte })
    expect(ofDevice).toBeInstanceOf(CachingPool)
  })

  const source = 'source must be an object with the functions allocate and free'
  test.each([
    [5, {}, TypeError, 'owner must be a Device or a Context, not 5'],
    [device, { maximumBytes: -1 }, RangeError, 'maximumBytes must be an integer from 0 to 2^53 - 1, not -1'],
    [device, { maximumBytes: '1' }, TypeError, "maximumBytes must be an integer from 0 to 2^53 - 1, not '1'"],
    [device, { source: 5 }, TypeError, `${source}, not 5`],
    [device, { source: { allocate: () => 0n } }, TypeError, `${source}, not a plain object`],
    [device, { size: 1 }, TypeError, "options must have only the keys maximumBytes, source, not 'size'"],
  ] as const)('refuses %o, %o', (owner, options, type, message) => {
    const make = (): unknown => CachingPool.create(owner as never, options as never)
    expect(make).toThrow(new type(`CachingPool.create: ${message}`))
  })
})

describe('CachingPool.allocate', () => {
  test('reuses returned memory on its stream without a driver call', () => {
    using pool = CachingPool.create(device)
    const values = Float32Array.from({ length: 1000 }, (_, index) => index / 3)
    const first = pool.allocate(stream, 'f32', values.length)
    expect([first.dtype, first.length, first.device, first.byteLength]).toEqual(['f32', 1000, device, 4000])
    expect(first.copyFromSync(values, { stream }).toArraySync({ stream })).toEqual(values)
    const { address } = first
    // 4,000 bytes take a block of 4,096 bytes. A small block is part of a segment of 2 MiB.
    expect([pool.used.current, pool.reserved.current, device.used]).toEqual([4096, 2 * mebibyte, 2 * mebibyte])
    first.dispose()
    expect([pool.used.current, pool.reserved.current]).toEqual([0, 2 * mebibyte])
    const again = pool.allocate(stream, 'u8', 4096)
    expect(again.address).toBe(address)
    expect(pool.statistics).toMatchObject({ allocations: 2, misses: 1 })
    again.dispose()
    expect(pool.used).toEqual({ current: 0, high: 4096 })
  })

  test.each([
    [1, 512, 2],
    [512, 512, 2],
    [513, 1024, 2],
    [mebibyte, mebibyte, 2],
    [mebibyte + 1, mebibyte + 512, 20],
    [10 * mebibyte - 512, 10 * mebibyte - 512, 20],
    [10 * mebibyte, 10 * mebibyte, 10],
    [11 * mebibyte, 11 * mebibyte, 12],
  ])('%d bytes are a block of %d in a segment of %d MiB', (bytes, block, segment) => {
    using pool = CachingPool.create(device)
    using buffer = pool.allocate(stream, 'u8', bytes)
    // A small rest of a large segment stays in the block.
    const isWhole = block > mebibyte && segment * mebibyte - block <= mebibyte
    expect(pool.used.current).toBe(isWhole ? segment * mebibyte : block)
    expect(pool.reserved.current).toBe(segment * mebibyte)
    expect(buffer.address % 512n).toBe(0n)
  })

  test('merges adjacent free blocks when a larger block is needed', () => {
    using pool = CachingPool.create(device)
    const quarters = [0, 1, 2, 3].map(() => pool.allocate(stream, 'u8', mebibyte / 2))
    const lowest = quarters.map(({ address }) => address).sort((a, b) => Number(a - b))[0]
    for (const quarter of quarters) quarter.dispose()
    using half = pool.allocate(stream, 'u8', mebibyte)
    expect(half.address).toBe(lowest)
    expect(pool.statistics.misses).toBe(1)
  })

  test('zero elements take no memory', () => {
    using pool = CachingPool.create(device)
    using none = pool.allocate(stream, 'f32', 0)
    expect([none.address, none.length, pool.reserved.current]).toEqual([0n, 0, 0])
  })

  test('a stream never receives memory that another stream returned', () => {
    using pool = CachingPool.create(device)
    const first = pool.allocate(stream, 'u8', 4096)
    const { address } = first
    first.dispose()
    using ofOther = pool.allocate(other, 'u8', 4096)
    expect(ofOther.address).not.toBe(address)
    using again = pool.allocate(stream, 'u8', 4096)
    expect(again.address).toBe(address)
  })

  test('another object of the same stream reuses its memory', () => {
    using pool = CachingPool.create(device)
    const first = pool.allocate(stream, 'u8', 4096)
    const { address } = first
    first.dispose()
    using borrowed = Stream.borrow(device, stream.handle)
    using again = pool.allocate(borrowed, 'u8', 4096)
    expect(again.address).toBe(address)
  })

  test('memory disposed during queued work stays valid until that work completes', () => {
    using pool = CachingPool.create(device)
    using result = DeviceBuffer.allocate(device, 'u8', 4096)
    delay(stream, 30)
    const early = pool.allocate(stream, 'u8', 4096)
    early.fill(7, { stream })
    result.copyFrom(early, { stream })
    early.dispose()
    const late = pool.allocate(stream, 'u8', 4096)
    expect(late.address).toBe(early.disposed ? late.address : 0n)
    late.fill(9, { stream })
    expect(result.toArraySync({ stream })).toEqual(new Uint8Array(4096).fill(7))
    late.dispose()
  })

  test.each([
    ['stream', (pool: Pool) => pool.allocate(null as never, 'u8', 1), 'stream must be a Stream'],
    ['dtype', (pool: Pool) => pool.allocate(stream, 'u9' as never, 1), 'dtype must be one of'],
    ['length', (pool: Pool) => pool.allocate(stream, 'u8', -1), 'length must be an integer from 0'],
  ])('refuses a wrong %s', (_, call, message) => {
    using pool = CachingPool.create(device)
    expect(() => call(pool)).toThrow(message)
    expect(pool.statistics.allocations).toBe(0)
  })

  test('refuses a stream of another device and a disposed stream', () => {
    using pool = CachingPool.create(device)
    using foreign = Stream.create(second)
    expect(() => pool.allocate(foreign, 'u8', 1)).toThrow(
      new TypeError('CachingPool.allocate: stream must be one of device 0, not of device 1'),
    )
    foreign.dispose()
    const gone = Stream.create(device)
    gone.dispose()
    expect(() => pool.allocate(gone, 'u8', 1)).toThrow(DisposedError)
  })

  test('refuses a stream of another copy of the package, and names both copies', async () => {
    const copy = await secondCopy()
    using pool = CachingPool.create(device)
    using theirs = copy.Stream.borrow(copy.Device.get(0), 0n)
    expect(() => pool.allocate(theirs as never, 'u8', 1)).toThrow(twoCopies)
  })
})

type Pool = ReturnType<typeof CachingPool.create>

describe('other streams that use pool memory', () => {
  test('memory recorded for another stream is reused only after the work of that stream completes', async () => {
    using pool = CachingPool.create(device)
    const buffer = pool.allocate(stream, 'u8', 4096)
    const { address } = buffer
    delay(other, 50)
    pool.recordUse(buffer, other)
    buffer.dispose()
    expect(pool.statistics.waitingBytes).toBe(4096)
    using meanwhile = pool.allocate(stream, 'u8', 4096)
    expect(meanwhile.address).not.toBe(address)
    await other.synchronize()
    using afterwards = pool.allocate(stream, 'u8', 4096)
    // The segment has other free blocks. The waiting block becomes free when the next request finds none of its size.
    expect([pool.statistics.waitingBytes, afterwards.address]).toEqual([0, address])
  })

  test('disposeOn() with another stream records that stream', async () => {
    using pool = CachingPool.create(device)
    const buffer = pool.allocate(stream, 'u8', 4096)
    const { address } = buffer
    delay(other, 50)
    buffer.disposeOn(other)
    expect(pool.statistics.waitingBytes).toBe(4096)
    using meanwhile = pool.allocate(stream, 'u8', 4096)
    expect(meanwhile.address).not.toBe(address)
    await other.synchronize()
  })

  test('the owning stream, recorded or used for disposal, causes no wait', () => {
    using pool = CachingPool.create(device)
    delay(stream, 20)
    const buffer = pool.allocate(stream, 'u8', 4096)
    pool.recordUse(buffer, stream)
    buffer.disposeOn(stream)
    expect(pool.statistics.waitingBytes).toBe(0)
  })

  test('a recorded stream that was disposed is still waited for', () => {
    using pool = CachingPool.create(device)
    const gone = Stream.create(device)
    using buffer = pool.allocate(stream, 'u8', 4096)
    pool.recordUse(buffer, gone)
    gone.dispose()
    expect(() => buffer.dispose()).not.toThrow()
    expect(pool.trimSync()).toBe(2 * mebibyte)
  })

  test('refuses memory of another origin than the pool', () => {
    using pool = CachingPool.create(device)
    using another = CachingPool.create(device)
    using ordinary = DeviceBuffer.allocate(device, 'u8', 1)
    using theirs = another.allocate(stream, 'u8', 1)
    for (const buffer of [ordinary, theirs]) {
      expect(() => pool.recordUse(buffer, other)).toThrow(
        'CachingPool.recordUse: buffer must be a buffer from this pool',
      )
    }
    expect(() => pool.recordUse({} as never, other)).toThrow('CachingPool.recordUse: buffer must be a DeviceBuffer')
    const gone = pool.allocate(stream, 'u8', 1)
    gone.dispose()
    expect(() => pool.recordUse(gone, other)).toThrow(DisposedError)
  })

  test('a view is accepted in place of the buffer', () => {
    using pool = CachingPool.create(device)
    const buffer = pool.allocate(stream, 'u8', 4096)
    delay(other, 30)
    pool.recordUse(buffer.slice(10, 20), other)
    buffer.dispose()
    expect(pool.statistics.waitingBytes).toBe(4096)
  })

  test('memory of a disposed stream returns to the device when more is needed', () => {
    using pool = CachingPool.create(device)
    const gone = Stream.create(device)
    const kept = pool.allocate(gone, 'u8', mebibyte)
    pool.allocate(gone, 'u8', 12 * mebibyte).dispose()
    gone.dispose()
    expect(pool.reserved.current).toBe(14 * mebibyte)
    using next = pool.allocate(stream, 'u8', 1)
    expect([next.length, pool.reserved.current]).toEqual([1, 4 * mebibyte]) // the segment of `kept`, and the new one
    kept.dispose()
  })
})

describe('disposal of a CachingPool', () => {
  test('buffers outlive the pool: each segment is freed with its last buffer', () => {
    const pool = CachingPool.create(device)
    const [small, large] = [pool.allocate(stream, 'u8', 100), pool.allocate(stream, 'u8', 12 * mebibyte)]
    pool.allocate(stream, 'u8', 30 * mebibyte).dispose()
    pool.dispose()
    pool.dispose()
    expect(device.used).toBe(14 * mebibyte)
    expect(small.fillSync(5, { stream }).toArraySync({ stream })).toEqual(new Uint8Array(100).fill(5))
    large.dispose()
    expect(device.used).toBe(2 * mebibyte)
    small.disposeOn(other)
    expect(device.used).toBe(0)
  })

  test('await using waits without blocking the thread', async () => {
    let turns = 0
    const ticking = setInterval(() => (turns += 1), 1)
    {
      await using pool = CachingPool.create(device)
      const buffer = pool.allocate(stream, 'u8', 100)
      delay(stream, 50)
      buffer.fill(1, { stream }).dispose()
    }
    clearInterval(ticking)
    expect([device.used, stream.query(), turns > 0]).toEqual([0, true, true])
  })

  test('await using of a buffer returns its memory too', async () => {
    using pool = CachingPool.create(device)
    {
      await using used = pool.allocate(stream, 'u8', 100)
      expect(used.address).not.toBe(0n)
      await using unused = pool.allocate(stream, 'u8', 100)
      expect([unused.length, pool.used.current]).toEqual([100, 1024])
    }
    expect(pool.used.current).toBe(0)
  })

  test('using the pool afterwards throws', async () => {
    const pool = CachingPool.create(device)
    pool.dispose()
    expect(() => pool.allocate(stream, 'u8', 1)).toThrow(DisposedError)
    expect(() => pool.trimSync()).toThrow(DisposedError)
    await expect(pool.trim()).rejects.toThrow(DisposedError)
    expect(inspect(pool)).toBe('CachingPool { device: 0, reserved: 0, used: 0, disposed: true }')
  })

  test('a device reset frees all memory of the pool', async () => {
    const own = new TestDevice(1)
    const pool = CachingPool.create(own)
    const on = Stream.create(own)
    const buffer = pool.allocate(on, 'u8', 100)
    pool.allocate(on, 'u8', 100).disposeOn(on)
    await own.reset()
    expect(() => pool.allocate(on, 'u8', 1)).toThrow(DisposedError)
    expect(() => buffer.fillSync(1)).toThrow(DisposedError)
    expect(() => pool.trimSync()).toThrow(DisposedError)
    buffer.dispose()
    on.dispose()
    pool.dispose()
    own.dispose()
  })
})

test('random requests: buffers never share memory, and each keeps the data written to it', async () => {
  using pool = CachingPool.create(device, { maximumBytes: 192 * mebibyte })
  const streams: StreamOf[] = [stream, other, Stream.create(device)]
  const live: { buffer: Buffer<'u8'>; mark: number; on: StreamOf }[] = []
  const size = (): number =>
    [randomInteger(1, 3000), randomInteger(1, mebibyte), randomInteger(1, 16 * mebibyte)][randomInteger(0, 2)] as number
  const pick = <T>(list: readonly T[]): T => list[randomInteger(0, list.length - 1)] as T
  let mark = 0
  for (let step = 0; step < 1500; step += 1) {
    const action = randomInteger(0, 9)
    if (action < 5 && live.length < 24) {
      const on = pick(streams)
      let buffer: Buffer<'u8'>
      try {
        buffer = pool.allocate(on, 'u8', size())
      } catch (error) {
        expect(error).toBeInstanceOf(StatusError)
        continue
      }
      mark = (mark + 1) % 256
      live.push({ buffer: buffer.fill(mark, { stream: on }), mark, on })
    } else if (action < 9 && live.length > 0) {
      const [{ buffer, mark: expected, on }] = live.splice(randomInteger(0, live.length - 1), 1) as [(typeof live)[0]]
      const ends = [buffer.slice(0, 1), buffer.slice(-1)].map((end) => end.toArraySync({ stream: on })[0])
      expect(ends).toEqual([expected, expected])
      const user = pick(streams)
      if (step % 3 === 0) {
        user.waitEvent(on.record())
        buffer.slice(0, 1).fill(255, { stream: user })
        if (step % 2 === 0) buffer.disposeOn(user)
        else {
          pool.recordUse(buffer, user)
          buffer.dispose()
        }
      } else buffer.dispose()
    } else if (step % 50 === 0) await pool.trim(randomInteger(0, 64) * mebibyte)
    const ranges = live.map(({ buffer }) => [buffer.address, buffer.address + BigInt(buffer.byteLength)] as const)
    ranges.sort(([a], [b]) => (a < b ? -1 : 1))
    for (const [index, [start]] of ranges.entries()) {
      if (index > 0) expect(start >= (ranges[index - 1]?.[1] as bigint)).toBe(true)
    }
    const held = live.reduce((sum, { buffer }) => sum + buffer.byteLength, 0)
    expect(pool.used.current).toBeGreaterThanOrEqual(held)
    expect(pool.used.current + pool.statistics.waitingBytes).toBeLessThanOrEqual(pool.reserved.current)
    expect([pool.reserved.current, pool.reserved.current <= 192 * mebibyte]).toEqual([device.used, true])
  }
  for (const { buffer } of live) buffer.dispose()
  expect(pool.used.current).toBe(0)
  pool.trimSync()
  expect(pool.reserved.current).toBe(0)
  streams[2]?.dispose()
})

// The last one, as the device stays so.
test('buffers can be disposed after the device has failed', async () => {
  const own = new TestDevice(1)
  const pool = CachingPool.create(own)
  const [on, also] = [Stream.create(own), Stream.create(own)]
  const [first, shared] = [pool.allocate(on, 'u8', 100), pool.allocate(on, 'u8', 100)]
  injectError(own, 700)
  expect(() => pool.allocate(on, 'u8', 5 * mebibyte)).toThrow('CUDA_ERROR_ILLEGAL_ADDRESS')
  first.dispose()
  shared.disposeOn(also)
  pool.dispose()
  on.dispose()
  also.dispose()
  await own.reset()
  own.dispose()
})
