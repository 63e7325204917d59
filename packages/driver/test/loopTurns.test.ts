import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { loopTurns } from '../../ffi/test/support/loopTurns.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { CachingPool, Device, DeviceBuffer, Module, PinnedBuffer } = await import('@shoal/driver')
const { toDLPack } = await import('@shoal/driver/dlpack')
const { Library, Linker } = await import('@shoal/driver/library')
const { PitchedBuffer } = await import('@shoal/driver/memory')
const { CudaArray } = await import('@shoal/driver/texture')
const { kinds } = (await import('./fixtures/everyObject.mjs' as string)) as {
  readonly kinds: { readonly [name: string]: (device: unknown) => readonly (Disposable & Partial<AsyncDisposable>)[] }
}

const device = Device.get(0)
const stream = device.createStream({ nonBlocking: true })
const event = stream.record()
const buffer = DeviceBuffer.zeros(device, 'f32', 16)
const pinned = PinnedBuffer.allocate(device, 'f32', 16)
const rows = PitchedBuffer.allocate(device, 'f32', { width: 4, height: 4 })
const texels = CudaArray.create(device, { width: 4, height: 4, format: 'f32' })
const pool = CachingPool.create(device)
const ptx = '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n'
const tensor = toDLPack(DeviceBuffer.zeros(device, 'f32', 4))
tensor.dispose()

const awaitables: { readonly [name: string]: () => PromiseLike<unknown> } = {
  'Stream.synchronize': () => stream.synchronize(),
  'Stream.synchronize with a limit': () => stream.synchronize({ timeout: 60_000 }),
  'Event.synchronize': () => event.synchronize(),
  'Context.synchronize': () => device.primaryContext.synchronize(),
  'Device.synchronize': () => device.synchronize(),
  'Stream.hostFunction': () => stream.hostFunction(() => undefined),
  'DeviceBuffer.toArray': () => buffer.toArray({ stream }),
  'DeviceBuffer.toArray of nothing': () => buffer.slice(0, 0).toArray({ stream }),
  'DeviceBuffer.copyTo an array': () => buffer.copyTo(new Float32Array(16), { stream }),
  'DeviceBuffer.copyTo page-locked memory': () => buffer.copyTo(pinned, { stream }),

  'PitchedBuffer.toArray': () => rows.toArray({ stream }),
  'PitchedBuffer.toRows': () => rows.toRows({ stream }),
  'CudaArray.toArray': () => texels.toArray({ stream }),
  'CachingPool.trim': () => pool.trim(),
  'Module.load': async () => (await Module.load(device, ptx)).dispose(),
  'Library.load': async () => (await Library.load(device, ptx)).dispose(),
  'Linker.complete': async () => {
    using linker = Linker.create(device).add(ptx)
    await linker.complete()
  },
  'DLPackTensor.released': () => tensor.released,
}

test.each(Object.entries(awaitables))('%s in a loop lets the event loop turn', async (_, call) => {
  expect(await loopTurns(call)).toBe(true)
})

const released = Object.entries(kinds).filter(([, make]) => {
  const all = make(device)
  for (const one of all) one[Symbol.dispose]()
  return all.some((one) => Symbol.asyncDispose in one)
})

test.each(released)('`await using` of each %s in a loop lets the event loop turn', async (_, make) => {
  const makeAndEnd = async () => {
    for (const one of make(device)) {
      const end = one[Symbol.asyncDispose]
      if (end === undefined) one[Symbol.dispose]()
      else await end.call(one)
    }
  }
  expect(await loopTurns(makeAndEnd)).toBe(true)
})

test('awaiting completed work resolves without a turn of the event loop', async () => {
  await new Promise((resolve) => setImmediate(resolve))
  let hasTurned = false
  setImmediate(() => {
    hasTurned = true
  })
  await stream.synchronize()
  await event.synchronize()
  expect(hasTurned).toBe(false)
})

test('a process that awaits idle streams in an endless loop runs its timers and handles SIGTERM', async () => {
  const child = spawn(process.execPath, [fileURLToPath(new URL('fixtures/idleWaits.mjs', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const lines: string[] = []
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    lines.push(...(chunk as string).trim().split('\n'))
    if (lines.includes('timer ran')) child.kill('SIGTERM')
  }
  expect(await exited).toEqual([0, null])
  expect(lines).toEqual(['timer ran', 'SIGTERM handled'])
})
