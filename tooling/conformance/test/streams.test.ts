import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, prepareCopies } = await import('@shoal/driver')
const { Graph } = await import('@shoal/driver/graph')
const runtime = await import('@shoal/runtime')
const { Communicator } = await import('@shoal/nccl')
const { Session, UniqueId } = await import('@shoal/nvshmem')
const { DisposedError, describeStream } = await import('@shoal/types')

type Given = import('@shoal/types').StreamArgument | undefined

const [device, second] = [Device.get(0), Device.get(1)]
const stream = device.createStream({ nonBlocking: true })
const other = second.createStream({ nonBlocking: true })
const memory = DeviceBuffer.zeros(device, 'f32', 8)
let communicator: import('@shoal/nccl').Communicator
let session: import('@shoal/nvshmem').Session
let symmetric: import('@shoal/nvshmem').SymmetricBuffer<'f32'>

/** Functions of each package that queue work. Each returns memory that the work sets to ones. */
const ways: { readonly [way: string]: (options: { readonly stream?: Given }) => unknown } = {
  'driver: fill': (options) => memory.fill(1, options),
  'driver: copy': (options) => memory.slice(4).copyFrom(memory.slice(0, 4), options),
  'runtime: fill': (options) => runtime.DeviceBuffer.view(memory, 'f32').fill(1, options),
  'nccl: collective': (options) => communicator.allReduce(memory, memory, options),
  'nvshmem: put': (options) => session.putOnStream(symmetric, memory, { pe: 0, ...options }),
  'nvshmem: barrier': (options) => session.barrierAllOnStream(options),
}
/** Returns the number of graph nodes that `fn` adds to a capture of a stream. */
function captured(queue: import('@shoal/driver').Stream, fn: () => unknown): number {
  using graph = Graph.capture(queue, () => void fn())
  return graph.nodes.length
}

beforeAll(async () => {
  communicator = (await Communicator.initAll([device]))[0] as typeof communicator
  session = await Session.init({ device, rank: 0, worldSize: 1, id: UniqueId.create() })
  symmetric = await session.allocate('f32', 8)
})

afterAll(async () => {
  await communicator.destroy()
  await session.finalize()
  for (const one of [stream, other]) one.dispose()
  memory.dispose()
})

describe.each(Object.keys(ways))('the stream option of %s', (way) => {
  const queue = ways[way] as (options: { readonly stream?: Given }) => unknown

  test('accepts a stream of any kind, its handle, null and undefined', async () => {
    for (const given of [stream, stream.handle, describeStream(stream), runtime.Stream.from(stream), null, 0n, 1n]) {
      await queue({ stream: given })
    }
    await queue({ stream: undefined })
    await queue({})
    await device.synchronize()
  })

  test('refuses other values than a stream', async () => {
    for (const [bad, error] of [
      [5, TypeError],
      ['stream', TypeError],
      [{}, TypeError],
      [7n, RangeError],
      [-1n, RangeError],
      [other, TypeError],
    ] as const) {
      await expect(async () => queue({ stream: bad as never })).rejects.toThrow(error)
    }
  })

  test('defaults to the stream of use()', () => {
    expect(captured(stream, () => stream.use(() => void queue({})))).toBeGreaterThan(0)
    expect(captured(stream, () => stream.use(() => void queue({ stream: undefined })))).toBeGreaterThan(0)
    const named = device.createStream({ nonBlocking: true })
    expect(captured(named, () => stream.use(() => void queue({ stream: named })))).toBeGreaterThan(0)
    named.dispose()
  })
})

test('Stream.from() of the runtime accepts a stream of any kind', () => {
  for (const given of [stream, stream.handle, describeStream(stream), null]) {
    expect(runtime.Stream.from(given).handle).toBe(given === null ? 0n : stream.handle)
  }
  expect(() => runtime.Stream.from(undefined as never)).toThrow(/^Stream.from: stream must be/)
})

test('Communicator.synchronize() refuses a missing stream', async () => {
  await expect(communicator.synchronize(undefined as never)).rejects.toThrow(
    /^Communicator.synchronize: stream must be a stream \(null is the default stream\), not undefined/,
  )
  await communicator.synchronize(null)
})

describe('use()', () => {
  test('nests with one scope per device, and ends when the function throws', () => {
    const inner = device.createStream({ nonBlocking: true })
    const fill = (): unknown => memory.fill(3)
    expect(captured(inner, () => stream.use(() => other.use(() => inner.use(fill))))).toBe(1)
    expect(captured(inner, () => stream.use(() => inner.use(() => other.use(fill))))).toBe(1)
    expect(() =>
      stream.use(() => {
        throw new Error('from inside')
      }),
    ).toThrow('from inside')
    expect(captured(inner, () => stream.use(() => 0))).toBe(0)
    expect(stream.use(() => 7)).toBe(7)
    inner.dispose()
  })

  test('accepts only synchronous functions and live streams', () => {
    expect(() => stream.use(async () => undefined)).toThrow(/Stream.use: fn must be a synchronous function/)
    expect(() => stream.use(5 as never)).toThrow(/Stream.use: fn must be a function/)
    const gone = device.createStream()
    expect(() => gone.use(() => [gone.dispose(), memory.fill(1)])).toThrow(DisposedError)
    expect(() => gone.use(() => undefined)).toThrow(DisposedError)
    memory.fill(1)
  })

  test('applies to prepared copies without a stream', () => {
    const copies = prepareCopies(device, [{ target: memory.slice(0, 4), source: memory.slice(4) }])
    stream.use(() => copies.launch())
    expect(() => copies.launch()).toThrow('PreparedCopies.launch: stream must be')
  })
})

test('SHOAL_DEFAULT_STREAM=warn reports each call site without a stream once', () => {
  const script = fileURLToPath(new URL('streams/missing.mjs', import.meta.url))
  const run = (environment: Record<string, string>) =>
    spawnSync(process.execPath, [script], { encoding: 'utf8', env: { ...process.env, ...environment } })
  const { stderr, status } = run({ SHOAL_DEFAULT_STREAM: 'warn' })
  expect(status).toBe(0)
  const warnings = stderr.split('\n').filter((line) => line.includes('ShoalStreamWarning'))
  expect(warnings.map((line) => /ShoalStreamWarning: ([\w.]+): no stream was given/.exec(line)?.[1])).toEqual([
    'DeviceBuffer.fill',
    'DeviceBuffer.copyFrom',
    'Communicator.allReduce',
  ])
  expect(stderr.match(/missing\.mjs:\d+/g)?.length).toBe(3)
  expect(run({}).stderr).not.toMatch(/ShoalStreamWarning/)
})
