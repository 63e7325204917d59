import {
  Communicator,
  deviceResourceNeeds,
  group,
  groupOffThread,
  llA2ASlots,
  NcclMemory,
  ncclStatusText,
  UniqueId,
} from '@shoal/nccl'
import { nccl, ncclResult_t } from '@shoal/nccl-sys'
import { memoryProtocol, streamProtocol } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deviceCount, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

let communicators: Communicator[]
let memory: TestMemory
let large: TestMemory
let stream: TestStream
let communicator: Communicator

beforeAll(async () => {
  startSoftwareDevice()
  communicators = await Communicator.initAll(Array.from({ length: deviceCount }, (_, device) => device))
  communicator = communicators[0] as Communicator
  memory = TestMemory.zeros(0, 'f32', 4)
  large = TestMemory.zeros(0, 'f32', 4 * deviceCount)
  stream = new TestStream(0)
})

afterAll(async () => {
  for (const one of communicators) await one.destroy()
  for (const one of [memory, large, stream]) one.dispose()
})

const id = UniqueId.fromBytes(new Uint8Array(128))

/** All calls with options: each with correct options and the given ones. */
const calls: Record<string, (more: object) => unknown> = {
  'Communicator.initAll': (more) => Communicator.initAll([0], { timeout: 1000, ...more }),
  'Communicator.initRank': (more) => Communicator.initRank({ device: 0, rank: 0, worldSize: 1, id, ...more }),
  'Communicator.joinGrown': (more) => Communicator.joinGrown({ device: 0, rank: 1, worldSize: 2, id, ...more }),
  'Communicator.split': (more) => communicator.split({ color: 0, ...more }),
  'Communicator.shrink': (more) => communicator.shrink({ exclude: [1], ...more }),
  'Communicator.grow': (more) => communicator.grow({ worldSize: deviceCount + 1, ...more }),
  'Communicator.synchronize': (more) => communicator.synchronize(stream, { ...more }),
  'Communicator.ready': (more) => communicator.ready({ ...more }),
  'Communicator.revoke': (more) => communicator.revoke({ ...more }),
  'Communicator.suspend': (more) => communicator.suspend({ ...more }),
  'Communicator.resume': (more) => communicator.resume({ ...more }),
  'Communicator.finalize': (more) => communicator.finalize({ ...more }),
  'Communicator.destroy': (more) => communicator.destroy({ ...more }),
  'Communicator.allReduce': (more) => communicator.allReduce(memory, memory, { stream, ...more }),
  'Communicator.allGather': (more) => communicator.allGather(memory, large, { stream, ...more }),
  'Communicator.reduceScatter': (more) => communicator.reduceScatter(large, memory, { stream, ...more }),
  'Communicator.allToAll': (more) => communicator.allToAll(large, large, { stream, ...more }),
  'Communicator.broadcast': (more) => communicator.broadcast(memory, memory, { stream, root: 0, ...more }),
  'Communicator.reduce': (more) => communicator.reduce(memory, memory, { stream, root: 0, ...more }),
  'Communicator.gather': (more) => communicator.gather(memory, large, { stream, root: 0, ...more }),
  'Communicator.scatter': (more) => communicator.scatter(large, memory, { stream, root: 0, ...more }),
  'Communicator.send': (more) => communicator.send(memory, { stream, peer: 0, ...more }),
  'Communicator.recv': (more) => communicator.recv(memory, { stream, peer: 0, ...more }),
  'Communicator.createPreMulSum': (more) => communicator.createPreMulSum(1, { dtype: 'f32', ...more }),
  'Communicator.registerWindow': (more) => communicator.registerWindow(memory, { ...more }),
  'Communicator.putSignal': (more) => communicator.putSignal(memory, { stream, peer: 1, ...more } as never),
  'Communicator.signal': (more) => communicator.signal({ stream, peer: 1, ...more }),
  'Communicator.waitSignal': (more) => communicator.waitSignal({ peer: 1 }, { stream, ...more }),
  'Communicator.createDeviceCommunicator': (more) => communicator.createDeviceCommunicator({ ...more }),
  groupOffThread: (more) => groupOffThread(() => undefined, { ...more }),
}

async function refusal(call: () => unknown): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return error
  }
  throw new Error('it was not refused')
}

describe.each(Object.keys(calls))('%s', (api) => {
  const call = calls[api] as (more: object) => unknown

  test('refuses an unknown option by name', async () => {
    const error = await refusal(() => call({ steam: null }))
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toMatch(
      new RegExp(`^${api}: options must have only the keys .*, not 'steam'(?:; did you mean 'stream'\\?)?$`),
    )
    expect(communicators.every(({ disposed }) => !disposed)).toBe(true)
  })
})

describe('timeout and signal', () => {
  const waits = Object.keys(calls).filter((api) =>
    /init|join|split|shrink|grow|synch|ready|revoke|suspend|resume/.test(api),
  )
  test.each([...waits, 'Communicator.registerWindow', 'Communicator.destroy', 'groupOffThread'])(
    'of %s are checked alike',
    async (api) => {
      const call = calls[api] as (more: object) => unknown
      // Values that are not limits of a wait, and limits that a timer does not support.
      for (const timeout of ['1000', Number.NaN, 10n, null]) {
        expect(await refusal(() => call({ timeout }))).toMatchObject({
          name: 'TypeError',
          message: expect.stringMatching(`^${api}: timeout must be `),
        })
      }
      for (const timeout of [-1, 2 ** 31, Number.POSITIVE_INFINITY]) {
        expect(await refusal(() => call({ timeout }))).toMatchObject({
          name: 'RangeError',
          message: expect.stringMatching(`^${api}: timeout must be `),
        })
      }
      expect(await refusal(() => call({ signal: new AbortController() }))).toMatchObject({
        name: 'TypeError',
        message: `${api}: signal must be an AbortSignal, not an object of class AbortController`,
      })
    },
  )
})

const largest = 2 ** 31 - 1
const team = { size: 3, rank: 0, stride: 1 }
/** All numbers that calls take: a call with a number that is too small or too large, and the limits in its error. */
const numbers: readonly (readonly [words: string, call: () => unknown])[] = [
  [
    `Communicator.split: color must be an integer from 0 to ${largest}, not -1`,
    () => communicator.split({ color: -1 }),
  ],
  [
    `Communicator.split: key must be an integer from ${-largest - 1} to ${largest}, not ${largest + 1}`,
    () => communicator.split({ color: 0, key: largest + 1 }),
  ],
  [
    'Communicator.shrink: exclude must be an integer from 0 to 2, not 3',
    () => communicator.shrink({ exclude: [deviceCount] }),
  ],
  [
    `Communicator.grow: worldSize must be an integer from 4 to ${largest}, not 3`,
    () => communicator.grow({ worldSize: deviceCount }),
  ],
  ...(['initRank', 'joinGrown'] as const).flatMap((name): [string, () => unknown][] => [
    [
      `Communicator.${name}: worldSize must be an integer from 1 to ${largest}, not 0`,
      () => Communicator[name]({ device: 0, rank: 0, worldSize: 0, id }),
    ],
    [
      `Communicator.${name}: rank must be an integer from 0 to 1, not 2`,
      () => Communicator[name]({ device: 0, rank: 2, worldSize: 2, id }),
    ],
  ]),
  [
    'Communicator.initRank: id must be a list of 1 to 1 ids, not of 2',
    () => Communicator.initRank({ device: 0, rank: 0, worldSize: 1, id: [id, id] }),
  ],
  [
    'Communicator.initRank: id must be a list of 1 to 1 ids, not of 0',
    () => Communicator.initRank({ device: 0, rank: 0, worldSize: 1, id: [] }),
  ],
  ...(['broadcast', 'reduce', 'gather', 'scatter'] as const).map((name): [string, () => unknown] => [
    `Communicator.${name}: root must be an integer from 0 to 2, not 3`,
    () => communicator[name](memory, memory, { stream, root: 3 }),
  ]),
  ...(['send', 'recv'] as const).map((name): [string, () => unknown] => [
    `Communicator.${name}: peer must be an integer from 0 to 2, not 3`,
    () => communicator[name](memory, { stream, peer: 3 }),
  ]),
  [
    `Communicator.allReduce: op must be an integer from 0 to ${largest}, not -1`,
    () => communicator.allReduce(memory, memory, { stream, op: -1 as never }),
  ],
  ...['putSignal', 'signal'].map((name): [string, () => unknown] => [
    `Communicator.${name}: peer must be an integer from 0 to 2, not 3`,
    () =>
      name === 'signal'
        ? communicator.signal({ stream, peer: 3 })
        : communicator.putSignal(memory, { stream, peer: 3 } as never),
  ]),
  ...['signal', 'context'].flatMap((name): [string, () => unknown][] => [
    [
      `Communicator.signal: ${name} must be an integer from 0 to ${largest}, not -1`,
      () => communicator.signal({ stream, peer: 1, [name]: -1 }),
    ],
    [
      `Communicator.waitSignal: ${name} must be an integer from 0 to ${largest}, not -1`,
      () => communicator.waitSignal({ peer: 1, [name]: -1 }, { stream }),
    ],
  ]),
  [
    'Communicator.waitSignal: signals[1].peer must be an integer from 0 to 2, not 3',
    () => communicator.waitSignal([{ peer: 1 }, { peer: 3 }], { stream }),
  ],
  [
    `Communicator.waitSignal: signals[0].count must be an integer from 1 to ${largest}, not 0`,
    () => communicator.waitSignal({ peer: 1, count: 0 }, { stream }),
  ],
  ...[
    'barrierCount',
    'lsaBarrierCount',
    'railGinBarrierCount',
    'worldGinBarrierCount',
    'lsaLLA2ABlockCount',
    'lsaLLA2ASlotCount',
    'ginContextCount',
    'ginSignalCount',
    'ginCounterCount',
    'ginQueueDepth',
    'ginTrafficClass',
  ].map((name): [string, () => unknown] => [
    `Communicator.createDeviceCommunicator: ${name} must be an integer from 0 to ${largest}, not -1`,
    () => communicator.createDeviceCommunicator({ [name]: -1 }),
  ]),
  ...(
    [
      ['barriers', { kind: 'lsaBarrier', team, barriers: -1 }],
      ['barriers', { kind: 'ginBarrier', team, barriers: -1 }],
      ['blocks', { kind: 'llA2A', blocks: -1, slots: 1 }],
      ['slots', { kind: 'llA2A', blocks: 1, slots: -1 }],
      ['blocks', { kind: 'ginOutbox', blocks: -1, sizeLog2: 1 }],
      ['sizeLog2', { kind: 'ginOutbox', blocks: 1, sizeLog2: -1 }, 30],
      ['blocks', { kind: 'ginInboxA2A', peers: team, blocks: -1, sizeLog2: 1 }],
      ['sizeLog2', { kind: 'ginInboxA2A', peers: team, blocks: 1, sizeLog2: -1 }, 30],
      ['byteLength', { kind: 'buffer', byteLength: -1 }],
      ['alignment', { kind: 'buffer', byteLength: 1, alignment: -1 }],
      ['ginSignals', { kind: 'buffer', byteLength: 1, ginSignals: -1 }],
      ['ginCounters', { kind: 'buffer', byteLength: 1, ginCounters: -1 }],
    ] as const
  ).map(([name, resource, most = largest]): [string, () => unknown] => [
    `deviceResourceNeeds: resource.${name} must be an integer from 0 to ${most}, not -1`,
    () => deviceResourceNeeds(resource),
  ]),
  ...(
    [
      ['size', `1 to ${largest}, not 0`, { ...team, size: 0 }],
      ['rank', '0 to 2, not 3', { ...team, rank: 3 }],
      ['stride', `0 to ${largest}, not -1`, { ...team, stride: -1 }],
    ] as const
  ).map(([name, limits, wrong]): [string, () => unknown] => [
    `deviceResourceNeeds: resource.team.${name} must be an integer from ${limits}`,
    () => deviceResourceNeeds({ kind: 'lsaBarrier', team: wrong, barriers: 1 }),
  ]),
  [`llA2ASlots: maxElements must be an integer from 0 to ${largest}, not -1`, () => llA2ASlots(-1, 1)],
  [`llA2ASlots: maxElementBytes must be an integer from 1 to ${largest}, not 0`, () => llA2ASlots(1, 0)],
  ...(
    [
      ['toWorld: rank', '0 to 2, not 3', (world) => world.toWorld(3)],
      ['toLsa: rank', '0 to 2, not 3', (world) => world.toLsa(3)],
      ['inner: size', '1 to 3, not 4', (world) => world.inner(4)],
      ['outer: size', '1 to 3, not 0', (world) => world.outer(0)],
    ] as readonly [string, string, (world: ReturnType<Communicator['team']>) => unknown][]
  ).map(([name, limits, call]): [string, () => unknown] => [
    `Team.${name} must be an integer from ${limits}`,
    () => call(communicator.team('world')),
  ]),
  ['NcclMemory.allocate: size must be an integer from 1 to 2^53 - 1, not 0', () => NcclMemory.allocate(0, 0)],
  [
    `NcclMemory.allocate: size.length must be an integer from 1 to ${Math.floor(Number.MAX_SAFE_INTEGER / 4)}, not 0`,
    () => NcclMemory.allocate(0, { dtype: 'f32', length: 0 }),
  ],
  ...(
    [
      ['cgaClusterSize', 0, 8],
      ['minCTAs', 1],
      ['maxCTAs', 1],
      ['trafficClass', 0],
      ['nvlsCTAs', 1],
      ['nChannelsPerNetPeer', 1],
      ['graphUsageMode', 0, 2],
      ['numRmaCtx', 1],
      ['maxP2pPeers', 1],
    ] as const
  ).map(([name, least, most = largest]): [string, () => unknown] => [
    `Communicator.initAll: config.${name} must be an integer from ${least} to ${most}, not ${least - 1}`,
    () => Communicator.initAll([0], { config: { [name]: least - 1 } }),
  ]),
]

test.each(numbers)('%s', async (words, call) => {
  expect(await refusal(call)).toMatchObject({ name: 'RangeError', message: words })
})

test('flags of a device communicator are booleans', async () => {
  for (const name of ['lsaMultimem', 'ginForceEnable', 'ginVaSignalsRequired', 'ginExclusiveContexts'] as const) {
    expect(await refusal(() => communicator.createDeviceCommunicator({ [name]: 1 }))).toMatchObject({
      name: 'TypeError',
      message: `Communicator.createDeviceCommunicator: ${name} must be a boolean, not 1`,
    })
  }
})

test('a repeated collective still refuses wrong options', () => {
  const range = Object.freeze(memory[memoryProtocol])
  const handle = Object.freeze(stream[streamProtocol])
  const operand = { [memoryProtocol]: range }
  const queue = { [streamProtocol]: handle }
  class Options {
    readonly stream = queue
  }
  for (const [wrong, message] of [
    [{ stream: queue, cuont: 2 }, "options must have only the keys stream, count, dtype, op, not 'cuont'"],
    [{ stream: queue, cuont: undefined }, "not 'cuont'"],
    [new Options(), 'not an object of class Options'],
    [Object.create({ stream: queue, cuont: 2 }), 'options must be a plain object'],
  ] as const) {
    // The error drops the group, so that none of its operations waits for other ranks.
    const twice = () => {
      communicator.allReduce(operand, operand, { stream: queue })
      communicator.allReduce(operand, operand, { stream: queue, op: undefined, count: undefined })
      communicator.allReduce(operand, operand, wrong as never)
    }
    expect(() => group(twice)).toThrow(message)
  }
  const withOp = () => communicator.allGather(memory, large, { stream, op: 'sum' } as never)
  expect(() => group(withOp)).toThrow("options must have only the keys stream, count, dtype, not 'op'")
})

test('class instances as options, and options whose getter throws, start nothing', () => {
  class Options {
    readonly stream = stream
  }
  expect(() => communicator.allReduce(memory, memory, new Options())).toThrow('not an object of class Options')
  const mine = new Error('mine')
  const throwing = {
    get stream(): never {
      throw mine
    },
  }
  expect(() => communicator.allReduce(memory, memory, throwing)).toThrow(mine)
  expect(communicator.asyncError()).toBeUndefined()
})

test('a status has a message without an error', () => {
  expect(ncclStatusText(0)).toBe('no error')
  expect(ncclStatusText(ncclResult_t.ncclInvalidArgument)).toMatch(/invalid argument/)
  expect(ncclStatusText(999)).toMatch(/unknown/)
  expect(() => ncclStatusText('0' as never)).toThrow('ncclStatusText: status must be an integer')
  for (const [last, beyond] of [
    [2 ** 31 - 1, 2 ** 31],
    [-(2 ** 31), -(2 ** 31) - 1],
  ] as const) {
    expect(ncclStatusText(last)).toMatch(/unknown/)
    expect(() => ncclStatusText(beyond)).toThrow(RangeError)
  }
  expect(nccl.has('ncclGetErrorString')).toBe(true)
})
