import { constants } from 'node:buffer'
import { cuLaunchHostFunc, driver } from '@shoal/cuda-sys/driver'
import { bindCall, putCString, slots64 } from '@shoal/ffi/calls'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { compile, shimEnvironment } from './support/shim.js'

const shim = compile('faultShim')
Object.assign(process.env, shimEnvironment(shim), { SHOAL_SIM_DEVICES: '1' })
const { Device, DeviceBuffer, PinnedBuffer, StatusError, Stream } = await import('@shoal/driver')

const { finishReleasesSync } = await import('@shoal/driver/shared')

const outOfMemory = 2
const notReady = 600
let device: import('@shoal/driver').Device

function call(name: string, argument: string, ...rest: number[]): number {
  const address = driver.rawSymbol(name)
  if (address === undefined) throw new Error(`the fault shim has no ${name}`)
  putCString(0, argument, name, 'name')
  for (const [index, value] of rest.entries()) slots64[index + 1] = BigInt(value)
  return bindCall(address, 1 + rest.length, 'i32', name)()
}

function fail(name: string, times: number, status: number): void {
  // A failing call would wait for pending releases and repeat itself.
  finishReleasesSync()
  expect(call('shimFail', name, times, status)).toBe(0)
}

function calls(name: string): number {
  return call('shimCalls', name)
}

/** Keeps a stream busy with the C library's usleep(). */
function delay(stream: import('@shoal/driver').Stream, milliseconds: number): void {
  const sleep = driver.rawSymbol('usleep') as bigint
  stream.context.run(() => expect(cuLaunchHostFunc(stream.handle, sleep, BigInt(milliseconds * 1000))).toBe(0))
}

function thrownBy(fn: () => unknown): unknown {
  try {
    fn()
  } catch (error) {
    return error
  }
  return undefined
}

beforeEach(() => {
  device = Device.get(0)
})

afterEach(async () => {
  // After a failure, nothing may keep the context once the waits of started copies have ended.
  device.dispose()
  await vi.waitFor(() => expect(device.primaryContextState.active).toBe(false))
})

/** Resolves after the event at the end of a stream's uploads is recorded. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe.each(['staged', 'page-locked'])('an upload whose completion cannot be marked (%s) is waited for', (kind) => {
  test.each([
    ['cuEventRecord', true],
    ['cuEventRecord', false],
    ['cuEventCreate', true],
    ['cuEventCreate', false],
  ])('if %s fails, on a separate stream: %s', async (api, isOwn) => {
    using stream = device.createStream({ nonBlocking: true })
    using target = DeviceBuffer.zeros(device, 'u8', 1000)
    using other = DeviceBuffer.zeros(device, 'u8', 1000)
    const ones = new Uint8Array(1000).fill(1)
    using pinned = PinnedBuffer.from(device, ones)
    delay(stream, 100)
    const before = calls(api)
    fail(api, 1, outOfMemory)
    const options = { stream: isOwn ? stream : Stream.borrow(device, stream.handle) }
    target.copyFrom(kind === 'staged' ? ones : pinned, options)
    // The owner of the stream may destroy it before the next turn.
    if (isOwn) await turn()
    expect(calls(api)).toBe(before + 1)
    expect(stream.query()).toBe(true)
    // This copy would overwrite staging memory that is still being read.
    other.copyFrom(new Uint8Array(1000).fill(2), { stream })
    expect(target.toArraySync({ stream })).toEqual(ones)
  })
})

test('uploads of a stream share one mark, and have none while another caller awaits later work', async () => {
  using stream = device.createStream({ nonBlocking: true })
  using target = DeviceBuffer.zeros(device, 'u8', 1000)
  using pinned = PinnedBuffer.allocate(device, 'u8', 1000)
  const upload = (): void => {
    for (let copy = 0; copy < 10; copy += 1) target.copyFrom(pinned, { stream })
    target.copyFrom(new Uint8Array(1000), { stream })
  }
  const marks = async (work: () => Promise<unknown> | undefined): Promise<number> => {
    const before = calls('cuEventRecord')
    await work()
    await turn()
    return calls('cuEventRecord') - before
  }
  expect(await marks(() => void upload())).toBe(1)
  expect(
    await marks(() => {
      upload()
      return target.copyTo(pinned, { stream })
    }),
  ).toBe(1)
  expect(
    await marks(() => {
      upload()
      delay(stream, 10)
      return stream.synchronize()
    }),
  ).toBe(1)
})

test('page-locked memory is kept until its upload completes, even if the stream is disposed', async () => {
  using target = DeviceBuffer.zeros(device, 'u8', 1000)
  for (const dispose of [false, true]) {
    const stream = device.createStream({ nonBlocking: true })
    const pinned = PinnedBuffer.from(device, new Uint8Array(1000).fill(dispose ? 2 : 1))
    const freed = calls('cuMemFreeHost')
    delay(stream, 50)
    target.copyFrom(pinned, { stream })
    pinned.dispose()
    if (dispose) stream.dispose()
    await turn()
    expect(calls('cuMemFreeHost')).toBe(freed)
    await vi.waitFor(() => expect(calls('cuMemFreeHost')).toBe(freed + 1), { timeout: 60_000 })
    expect(target.toArraySync()).toEqual(new Uint8Array(1000).fill(dispose ? 2 : 1))
    stream.dispose()
  }
})

test('page-locked memory used by two uploads is kept until both complete', async () => {
  using target = DeviceBuffer.zeros(device, 'u8', 1000)
  using other = DeviceBuffer.zeros(device, 'u8', 1000)
  using first = device.createStream({ nonBlocking: true })
  using last = device.createStream({ nonBlocking: true })
  const pinned = PinnedBuffer.from(device, new Uint8Array(1000).fill(3))
  const freed = calls('cuMemFreeHost')
  delay(last, 300)
  target.copyFrom(pinned, { stream: first })
  other.copyFrom(pinned, { stream: last })
  pinned.dispose()
  await first.synchronize()
  await turn()
  // On a slow machine the work may be complete too.
  if (!last.query()) expect(calls('cuMemFreeHost')).toBe(freed)
  await last.synchronize()
  await vi.waitFor(() => expect(calls('cuMemFreeHost')).toBe(freed + 1), { timeout: 60_000 })
  expect(other.toArraySync()).toEqual(new Uint8Array(1000).fill(3))
  await turn()
  expect(calls('cuMemFreeHost')).toBe(freed + 1)
})

test('a download whose completion cannot be marked is waited for', async () => {
  using stream = device.createStream({ nonBlocking: true })
  using source = DeviceBuffer.zeros(device, 'u8', 1000)
  delay(stream, 100)
  fail('cuEventRecord', 1, outOfMemory)
  await expect(source.toArray({ stream })).rejects.toMatchObject({ api: 'cuEventRecord' })
  expect(stream.query()).toBe(true)
  expect(await source.toArray({ stream })).toEqual(new Uint8Array(1000))
})

test('no awaited copy is queued if no event is available to wait for it', async () => {
  using target = DeviceBuffer.zeros(device, 'u8', 1000)
  using pinned = PinnedBuffer.allocate(device, 'u8', 1000)
  const before = calls('cuMemcpyDtoHAsync')
  for (const host of [new Uint8Array(1000), pinned]) {
    fail('cuEventCreate', 1, outOfMemory)
    await expect(target.copyTo(host as Uint8Array)).rejects.toMatchObject({ api: 'cuEventCreate' })
  }
  expect(calls('cuMemcpyDtoHAsync')).toBe(before)
})

test('waits that cannot begin use up no events', async () => {
  using stream = device.createStream()
  // An idle stream needs no event.
  fail('cuStreamQuery', 22, notReady)
  await stream.synchronize()
  const before = calls('cuEventCreate')
  fail('cuEventRecord', 20, outOfMemory)
  for (let round = 0; round < 20; round += 1) await expect(stream.synchronize()).rejects.toBeInstanceOf(StatusError)
  await stream.synchronize()
  expect(calls('cuEventCreate')).toBe(before)
})

test.each([
  ['cuStreamDestroy', () => device.createStream()],
  ['cuEventDestroy', () => device.createEvent()],
  ['cuMemFree', () => DeviceBuffer.allocate(device, 'u8', 100)],
  ['cuMemFreeHost', () => PinnedBuffer.allocate(device, 'u8', 100)],
])('a disposeSync() that fails in %s still releases the context', (api, make) => {
  const object = make()
  fail(api, 1, 1)
  expect(thrownBy(() => object.disposeSync())).toMatchObject({ api, status: 1 })
  expect(object.disposed).toBe(true)
})

test('page-locked memory that cannot become an ArrayBuffer is freed', async () => {
  using buffer = DeviceBuffer.zeros(device, 'u8', 100)
  const before = calls('cuMemFreeHost')
  fail('cuMemHostAlloc', 1, 0)
  expect(thrownBy(() => PinnedBuffer.allocate(device, 'u8', 100))).toMatchObject({
    message: expect.stringContaining('hostView'),
  })
  fail('cuMemHostAlloc', 1, 0)
  await expect(buffer.toArray()).rejects.toThrow('hostView')
  finishReleasesSync()
  expect(calls('cuMemFreeHost') - before).toBe(2)
})

test('a length beyond the ArrayBuffer limit is refused before any allocation', () => {
  const before = calls('cuMemHostAlloc')
  expect(() => PinnedBuffer.allocate(device, 'u8', constants.MAX_LENGTH + 1)).toThrow(RangeError)
  if (constants.MAX_LENGTH < 2 ** 40) {
    expect(() => PinnedBuffer.allocate(device, 'f64', constants.MAX_LENGTH / 8 + 1)).toThrow(
      /length must be of at most .* the limit of an ArrayBuffer/,
    )
  }
  expect(calls('cuMemHostAlloc')).toBe(before)
})
