import { inspect } from 'node:util'
import { withContext } from '@shoal/cuda-sys'
import { cuCtxGetCurrent } from '@shoal/cuda-sys/driver'
import { Communicator, group, ncclHeaderVersion, ncclVersion, UniqueId } from '@shoal/nccl'
import {
  ncclAllReduce,
  type ncclComm_t,
  ncclCommAbort,
  ncclCommGetAsyncError,
  ncclCommInitRank,
  ncclDataType_t,
  ncclRedOp_t,
  ncclResult_t,
} from '@shoal/nccl-sys'
import { AbortedError, DisposedError, deviceProtocol } from '@shoal/types'
import { beforeAll, describe, expect, test } from 'vitest'
import { contextOf, deviceCount, errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

beforeAll(startSoftwareDevice)

function currentContext(): bigint {
  const out = new BigUint64Array(1)
  expect(cuCtxGetCurrent(out)).toBe(0)
  return out[0] as bigint
}

test('ncclVersion() and ncclHeaderVersion() return the versions of library and header', () => {
  expect(ncclVersion().toString()).toMatch(/^2\.\d+\.\d+$/)
  expect(ncclHeaderVersion().value).toBe(23007)
})

describe('initAll', () => {
  test('makes one communicator per device, in the given order', async () => {
    const communicators = await Communicator.initAll([2, { [deviceProtocol]: { version: 0, ordinal: 0 } }])
    expect(communicators.map(({ rank, worldSize, deviceOrdinal }) => [rank, worldSize, deviceOrdinal])).toEqual([
      [0, 2, 2],
      [1, 2, 0],
    ])
    for (const communicator of communicators) expect(communicator.asyncError()).toBeUndefined()
    expect(inspect(communicators[0])).toBe('Communicator { rank: 0, worldSize: 2, deviceOrdinal: 2 }')
    await Promise.all(communicators.map((communicator) => communicator.destroy()))
  })

  test('does not change the current context', async () => {
    const before = currentContext()
    const communicators = await Communicator.initAll([0, 1, 2])
    expect(currentContext()).toBe(before)
    for (const communicator of communicators) await communicator.destroy()
    expect(currentContext()).toBe(before)
  })

  test.each([
    ['no device', [], RangeError],
    ['a device that is not there', [0, deviceCount], RangeError],
    ['a device named twice', [1, 1], RangeError],
    ['a negative ordinal', [-1], RangeError],
    ['NaN', [Number.NaN], TypeError],
    ['no ordinal', ['0'], TypeError],
    ['no list', 3, TypeError],
  ])('refuses %s', async (_, devices, kind) => {
    await expect(Communicator.initAll(devices as number[])).rejects.toThrow(kind)
  })

  test('names the function and the wrong device parameter', async () => {
    await expect(Communicator.initAll([0, null as never])).rejects.toThrow(
      'Communicator.initAll: devices[1] must be an object with',
    )
    const options = { device: undefined, rank: 0, worldSize: 1, id: UniqueId.create() }
    await expect(Communicator.initRank(options as never)).rejects.toThrow(
      'Communicator.initRank: device must be an object with',
    )
  })

  test('names a device that does not exist, and the number of devices', async () => {
    await expect(Communicator.initAll([7])).rejects.toThrow(`no device 7, this machine has ${deviceCount}`)
  })
})

describe('initRank', () => {
  test('two ranks of one process join', async () => {
    const id = UniqueId.create()
    const [first, second] = await Promise.all(
      [0, 1].map((rank) => Communicator.initRank({ device: rank, rank, worldSize: 2, id })),
    )
    expect([first?.rank, second?.rank]).toEqual([0, 1])
    await Promise.all([first?.destroy(), second?.destroy()])
  })

  test('waiting for a late rank does not block the event loop', async () => {
    const id = UniqueId.create()
    const first = Communicator.initRank({ device: 0, rank: 0, worldSize: 2, id })
    let turns = 0
    const timer = setInterval(() => (turns += 1), 1)
    await new Promise((resolve) => setTimeout(resolve, 100))
    clearInterval(timer)
    expect(turns).toBeGreaterThan(3)
    const second = await Communicator.initRank({ device: 1, rank: 1, worldSize: 2, id })
    await Promise.all([(await first).destroy(), second.destroy()])
  })

  const id = UniqueId.fromBytes(new Uint8Array(128))
  test.each([
    ['rank beyond the world', { device: 0, rank: 2, worldSize: 2, id }, RangeError],
    ['negative rank', { device: 0, rank: -1, worldSize: 2, id }, RangeError],
    ['rank NaN', { device: 0, rank: Number.NaN, worldSize: 2, id }, TypeError],
    ['fraction', { device: 0, rank: 0.5, worldSize: 2, id }, TypeError],
    ['no world', { device: 0, rank: 0, worldSize: 0, id }, RangeError],
    ['unknown device', { device: 99, rank: 0, worldSize: 1, id }, RangeError],
    ['no id', { device: 0, rank: 0, worldSize: 1 }, TypeError],
    ['bare bytes as id', { device: 0, rank: 0, worldSize: 1, id: new Uint8Array(128) }, TypeError],
    [
      'an object with the prototype of an id',
      { device: 0, rank: 0, worldSize: 1, id: Object.create(UniqueId.prototype) },
      TypeError,
    ],
    ['no signal', { device: 0, rank: 0, worldSize: 1, id, signal: {} }, TypeError],
    ['no options', undefined, TypeError],
  ])('refuses: %s', async (_, options, kind) => {
    await expect(Communicator.initRank(options as never)).rejects.toThrow(kind)
  })

  test.each([undefined, { blocking: false }])(
    'refuses arguments that only NCCL can compare across ranks: %j',
    async (config) => {
      const join = (ids: UniqueId, places: readonly [device: number, rank: number, worldSize: number][]) =>
        Promise.allSettled(
          places.map(([device, rank, worldSize]) =>
            Communicator.initRank({ device, rank, worldSize, id: ids, timeout: 500, ...(config ? { config } : {}) }),
          ),
        )
      const reasons = (ends: PromiseSettledResult<Communicator>[]) =>
        ends.map((end) => (end.status === 'rejected' ? (end.reason as Error) : new Error('it joined')))
      const sameDevice = reasons(
        await join(UniqueId.create(), [
          [0, 0, 2],
          [0, 1, 2],
        ]),
      )
      for (const error of sameDevice) {
        expect(error).toMatchObject({ code: 'ncclInvalidUsage', lastError: expect.stringContaining('CUDA device 0') })
      }
      const sameRank = reasons(
        await join(UniqueId.create(), [
          [0, 0, 2],
          [1, 0, 2],
        ]),
      )
      expect(sameRank.map((error) => (error as { code?: string }).code).sort()).toEqual([
        'SHOAL_TIMEOUT',
        'ncclInvalidUsage',
      ])
      const otherSize = reasons(
        await join(UniqueId.create(), [
          [0, 0, 2],
          [1, 1, 3],
        ]),
      )
      expect(otherSize.map((error) => (error as { code?: string }).code).sort()).toEqual([
        'SHOAL_TIMEOUT',
        'ncclInvalidArgument',
      ])
      for (const error of reasons(await join(id, [[0, 0, 2]]))) {
        expect(error).toMatchObject({ code: 'ncclInvalidArgument', lastError: expect.stringContaining('unique id') })
      }
    },
  )

  test('a signal ends the wait for ranks that never come', async () => {
    const already = Communicator.initRank({ device: 0, rank: 0, worldSize: 2, id, signal: AbortSignal.abort('no') })
    await expect(already).rejects.toThrow(AbortedError)

    const abort = new AbortController()
    const shared = UniqueId.create()
    const waiting = Communicator.initRank({ device: 0, rank: 0, worldSize: 2, id: shared, signal: abort.signal })
    setTimeout(() => abort.abort(new Error('enough')), 50)
    const error = await waiting.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(AbortedError)
    expect((error as AbortedError).cause).toEqual(new Error('enough'))
    // The other rank joins late, which ends the abandoned thread's wait. This thread aborts that thread's communicator:
    // it waits inside NCCL until both ranks have joined, so the late rank can only then notice that it is alone.
    const out = new BigUint64Array(1)
    expect(withContext(contextOf(1), () => ncclCommInitRank(out, 2, shared.toBytes(), 1))).toBe(0)
    const late = out[0] as ncclComm_t
    const status = new Int32Array(1)
    const asyncError = (): number => {
      expect(ncclCommGetAsyncError(late, status)).toBe(0)
      return status[0] as number
    }
    const memory = TestMemory.zeros(1, 'f32', 1)
    const { address } = memory
    const call = () => ncclAllReduce(address, address, 1, ncclDataType_t.ncclFloat32, ncclRedOp_t.ncclSum, late, null)
    expect(withContext(contextOf(1), call)).toBe(0)
    expect(asyncError()).toBe(0)
    await expect.poll(asyncError, { timeout: 60_000 }).toBe(ncclResult_t.ncclRemoteError)
    expect(ncclCommAbort(late)).toBe(0)
    memory.dispose()
  })
})

describe('destruction of a communicator', () => {
  test('destroy() is idempotent, and later uses are refused', async () => {
    const [communicator] = (await Communicator.initAll([0])) as [Communicator]
    const memory = TestMemory.zeros(0, 'f32', 4)
    const stream = new TestStream(0)
    const first = communicator.destroy()
    expect(communicator.destroy()).toBe(first)
    expect(communicator.dispose()).toBe(first)
    expect(communicator.abort()).toBe(first)
    expect(communicator.disposed).toBe(true)
    expect(() => communicator.allReduce(memory, memory, { stream })).toThrow(DisposedError)
    await first
    expect(() => communicator.handle).toThrow(DisposedError)
    expect(() => communicator.asyncError()).toThrow(DisposedError)
    expect(() => communicator.broadcast(memory, memory, { root: 0, stream })).toThrow(DisposedError)
    await expect(communicator.finalize()).rejects.toThrow(DisposedError)
    await expect(communicator.finalize({ timeout: -1 })).rejects.toThrow(RangeError)
    expect(errorOf(() => communicator.lastError())).toMatchObject({ code: 'SHOAL_DISPOSED', operation: 'lastError' })
    memory.dispose()
    stream.dispose()
  })

  test('finalize() refuses a revoked or suspended communicator, and changes nothing', async () => {
    for (const [state, enter] of [
      ['revoked', (one: Communicator) => one.revoke()],
      ['suspended', (one: Communicator) => one.suspend()],
    ] as const) {
      const communicators = await Communicator.initAll([0, 1])
      await Promise.all(communicators.map(enter))
      for (const communicator of communicators) {
        const refused = { code: 'SHOAL_COMMUNICATOR_STATE', operation: 'finalize', state }
        await expect(communicator.finalize()).rejects.toMatchObject(refused)
        expect(inspect(communicator)).toContain(`state: '${state}'`)
      }
      await Promise.all(communicators.map((communicator) => communicator.destroy()))
    }
  })

  test('abort() frees everything, and destroy() then does nothing', async () => {
    const communicators = await Communicator.initAll([0, 1])
    const aborts = communicators.map((communicator) => communicator.abort())
    expect(communicators[0]?.destroy()).toBe(aborts[0])
    await Promise.all(aborts)
    expect(() => communicators[0]?.asyncError()).toThrow(DisposedError)
    expect(inspect(communicators[0])).toBe("Communicator { rank: 0, worldSize: 2, deviceOrdinal: 0, state: 'aborted' }")
  })

  test('destroy() frees a finalized communicator', async () => {
    const communicators = await Communicator.initAll([0, 1])
    await Promise.all(communicators.map((communicator) => communicator.finalize()))
    const memory = TestMemory.zeros(0, 'f32', 4)
    expect(() => communicators[0]?.allReduce(memory, memory, { stream: null })).toThrow(DisposedError)
    expect(communicators[0]?.asyncError()).toBeUndefined()
    await Promise.all(communicators.map((communicator) => communicator.destroy()))
    memory.dispose()
  })

  test('await using destroys the communicator', async () => {
    let kept: Communicator
    {
      await using communicator = (await Communicator.initAll([1]))[0] as Communicator
      kept = communicator
    }
    expect(() => kept.handle).toThrow(DisposedError)
  })

  test('a communicator destroyed inside a group ends after the group', async () => {
    const [communicator] = (await Communicator.initAll([0])) as [Communicator]
    const memory = TestMemory.from(0, new Float32Array([1, 2]))
    const stream = new TestStream(0)
    const ended = group(() => {
      communicator.allReduce(memory, memory, { stream })
      return { promise: communicator.destroy() }
    })
    await ended.promise
    expect(memory.floats()).toEqual([1, 2])
    memory.dispose()
    stream.dispose()
  })

  test('each retained primary context is released once', async () => {
    contextOf(0)
    for (let i = 0; i < 3; i += 1) for (const one of await Communicator.initAll([0, 1])) await one.destroy()
    // The test's context still exists: its memory works.
    const memory = TestMemory.from(0, new Float32Array([5]))
    expect(memory.floats()).toEqual([5])
    memory.dispose()
  })
})
