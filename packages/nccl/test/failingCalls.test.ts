import { join } from 'node:path'
import {
  Communicator,
  deviceResourceNeeds,
  group,
  groupOffThread,
  groupStart,
  NcclMemory,
  NcclParameter,
  prepareGroup,
  simulateGroup,
  UniqueId,
} from '@shoal/nccl'
import { nccl, ncclGroupEnd, ncclResult_t } from '@shoal/nccl-sys'
import { StatusError } from '@shoal/types'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { compileFailingLibrary, failNextOf } from '../../ffi/test/support/failingLibrary.js'
import { nativeMemoryKept } from '../../ffi/test/support/nativeMemoryKept.js'
import { libraries, libraryFolder } from '../../sim/src/index.js'
import { startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

process.env['SHOAL_NCCL_LIBRARY'] = compileFailingLibrary('nccl', join(libraryFolder(), libraries.nccl))
const failNext = (name: string, answer: number) => failNextOf(nccl, name, answer)
const status = ncclResult_t.ncclInvalidArgument
const team = { size: 1, rank: 0, stride: 1 }
let stream: TestStream
let memory: TestMemory
let one: Communicator
/** The communicator of each test. */
let own: Communicator
let pair: [Communicator, Communicator]

beforeAll(async () => {
  startSoftwareDevice()
  one = (await Communicator.initAll([0]))[0] as Communicator
  pair = (await Communicator.initAll([0, 1])) as typeof pair
  stream = new TestStream(0)
  memory = TestMemory.zeros(0, 'f32', 4)
})

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end()
})

afterAll(async () => {
  for (const communicator of [one, ...pair]) await communicator.destroy()
  for (const each of [stream, memory]) each.dispose()
})

/** Returns the error that a call throws or rejects with. */
async function failure(call: () => unknown): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return error
  }
  return 'nothing'
}

async function window() {
  const place = await one.allocate(4096)
  const opened = await one.registerWindow(place)
  cleanUp.push(
    () => place.free(),
    () => opened.dispose(),
  )
  return opened
}

const id = (): UniqueId => UniqueId.create()
const root = { root: 0 }
const joining = () => ({ device: 1, rank: 0, worldSize: 1, id: id() })
const more = (count: number) => Array.from({ length: count }, () => id())

/** A C function, a call that makes it, and an optional function that creates the call's arguments. */
type Case = readonly [name: string, call: (prepared: never) => unknown, prepare?: () => unknown]

const cases: readonly Case[] = [
  ['ncclGetUniqueId', () => UniqueId.create()],
  ['ncclCommInitAll', () => Communicator.initAll([0, 1])],
  ['ncclCommInitRank', (options: never) => Communicator.initRank(options), joining],
  [
    'ncclCommInitRankConfig',
    (options: object) => Communicator.initRank({ ...options, config: { commName: 'x' } } as never),
    joining,
  ],
  [
    'ncclCommInitRankScalable',
    (ids: UniqueId[]) => Communicator.initRank({ device: 0, rank: 0, worldSize: 2, id: ids }),
    () => more(2),
  ],
  ['ncclCommSplit', () => own.split({ color: 0, config: { commName: 'x' } })],
  ['ncclCommUserRank', () => own.split({ color: 0 })],
  ['ncclCommCount', () => own.split({ color: 0 })],
  ...['ncclCommUserRank', 'ncclCommCount'].map(
    (name): Case => [
      name,
      (parent: Communicator) => parent.split({ color: 0 }),
      async () => {
        const parent = await Communicator.initRank({ ...joining(), config: { blocking: false } })
        cleanUp.push(() => parent.destroy())
        return parent
      },
    ],
  ),
  ['ncclCommShrink', () => pair[0].shrink({ exclude: [1] })],
  ['ncclCommGrow', () => own.grow({ worldSize: 2 })],
  ['ncclCommGetUniqueId', () => own.createUniqueId()],
  ['ncclCommQueryProperties', () => own.properties()],
  ['ncclCommMemStats', () => own.memoryStatistics()],
  ['ncclCommGetAsyncError', () => own.asyncError()],
  ['ncclCommSuspend', () => own.suspend()],
  ['ncclCommResume', () => own.resume(), () => own.suspend()],
  ['ncclCommRevoke', () => own.revoke()],
  ['ncclCommFinalize', () => own.finalize()],
  ['ncclCommDestroy', () => own.destroy()],
  ['ncclDevCommCreate', () => own.createDeviceCommunicator()],
  ['ncclDevCommDestroy', (made: { dispose: () => unknown }) => made.dispose(), () => own.createDeviceCommunicator()],
  ['ncclLsaBarrierCreateRequirement', () => deviceResourceNeeds({ kind: 'lsaBarrier', team, barriers: 1 })],
  ['ncclGinBarrierCreateRequirement', () => deviceResourceNeeds({ kind: 'ginBarrier', team, barriers: 1 })],
  ['ncclLLA2ACreateRequirement', () => deviceResourceNeeds({ kind: 'llA2A', blocks: 1, slots: 1 })],
  ['ncclGinOutboxCreateRequirement', () => deviceResourceNeeds({ kind: 'ginOutbox', blocks: 1, sizeLog2: 1 })],
  [
    'ncclGinInboxA2ACreateRequirement',
    () => deviceResourceNeeds({ kind: 'ginInboxA2A', peers: team, blocks: 1, sizeLog2: 1 }),
  ],
  ['ncclAllReduce', () => one.allReduce(memory, memory, { stream })],
  ['ncclAllGather', () => one.allGather(memory, memory, { stream })],
  ['ncclReduceScatter', () => one.reduceScatter(memory, memory, { stream })],
  [
    'ncclAlltoAll',
    (other: TestMemory) => one.allToAll(memory, other, { stream }),
    () => {
      const other = TestMemory.zeros(0, 'f32', 4)
      cleanUp.push(() => other.dispose())
      return other
    },
  ],
  ['ncclBroadcast', () => one.broadcast(memory, memory, { stream, ...root })],
  ['ncclReduce', () => one.reduce(memory, memory, { stream, ...root })],
  ['ncclGather', () => one.gather(memory, memory, { stream, ...root })],
  ['ncclScatter', () => one.scatter(memory, memory, { stream, ...root })],
  ['ncclSend', () => one.send(memory, { stream, peer: 0 })],
  ['ncclRecv', () => one.recv(memory, { stream, peer: 0 })],
  ['ncclSignal', () => one.signal({ stream, peer: 0 })],
  ['ncclWaitSignal', () => one.waitSignal({ peer: 0 }, { stream })],
  ['ncclRedOpCreatePreMulSum', () => one.createPreMulSum(2, { dtype: 'f32' })],
  [
    'ncclRedOpDestroy',
    (op: { dispose: () => unknown }) => op.dispose(),
    () => one.createPreMulSum(2, { dtype: 'f32' }),
  ],
  ['ncclCommRegister', () => one.register(memory)],
  ['ncclCommDeregister', (made: { dispose: () => unknown }) => made.dispose(), () => one.register(memory)],
  ['ncclMemAlloc', () => NcclMemory.allocate(0, 16)],
  ['ncclMemFree', (place: NcclMemory) => place.free(), () => NcclMemory.allocate(0, 16)],
  ['ncclMemFree', (place: NcclMemory) => place.disposeSync(), () => NcclMemory.allocate(0, 16)],
  [
    'ncclCommWindowRegister',
    (place: NcclMemory) => one.registerWindow(place),
    async () => {
      const place = await one.allocate(4096)
      cleanUp.push(() => place.free())
      return place
    },
  ],
  ['ncclCommWindowDeregister', (opened: Awaited<ReturnType<typeof window>>) => opened.dispose(), window],
  ['ncclWinGetUserPtr', (opened: Awaited<ReturnType<typeof window>>) => opened.userPointer, window],
  ['ncclGetPeerDevicePointer', (opened: Awaited<ReturnType<typeof window>>) => opened.peerPointer(0), window],
  ['ncclGetLsaDevicePointer', (opened: Awaited<ReturnType<typeof window>>) => opened.lsaPointer(0), window],
  ['ncclGetLsaMultimemDevicePointer', (opened: Awaited<ReturnType<typeof window>>) => opened.multimemPointer(), window],
  [
    'ncclGetMultimemDevicePointer',
    (opened: Awaited<ReturnType<typeof window>>) => opened.multimemPointer(0, 4096n),
    window,
  ],
  ['ncclParamGetAllParameterKeys', () => NcclParameter.keys()],
  ['ncclParamBind', () => NcclParameter.bind('NCCL_DEBUG')],
  ['ncclParamGetParameter', () => NcclParameter.read('NCCL_DEBUG')],
  ['ncclParamGetStr', (one: NcclParameter) => one.readText(), () => NcclParameter.bind('NCCL_DEBUG')],
  ['ncclParamGetI64', (one: NcclParameter) => one.readInteger('i64'), () => NcclParameter.bind('NCCL_DEBUG')],
  ['ncclGroupStart', () => group(() => one.allReduce(memory, memory, { stream }))],
  ['ncclGroupStart', () => groupStart()],
  ['ncclGroupStart', () => simulateGroup(() => one.allReduce(memory, memory, { stream }))],
  ['ncclGroupSimulateEnd', () => simulateGroup(() => one.allReduce(memory, memory, { stream }))],
  ['ncclAllReduce', () => group(() => one.allReduce(memory, memory, { stream }))],
  ['ncclSend', () => group(() => one.send(memory, { stream, peer: 0 }))],
  ['ncclAllReduce', () => groupOffThread(() => one.allReduce(memory, memory, { stream }))],
  ['ncclGroupEnd', () => groupOffThread(() => one.allReduce(memory, memory, { stream }))],
  [
    'ncclAllReduce',
    (prepared: { launch: () => unknown }) => prepared.launch(),
    () => one.prepareAllReduce(memory, memory, { stream }),
  ],
  [
    'ncclAllReduce',
    (prepared: { launch: () => unknown }) => prepared.launch(),
    () => prepareGroup([one.prepareAllReduce(memory, memory, { stream })]),
  ],
] as readonly Case[]

const named = cases.map(([name, call, prepare]) => ({ name, call, prepare }))
test.for(named)('an error of $name is thrown with its name', async ({ name, call, prepare }) => {
  const kept = await nativeMemoryKept(async () => {
    own = (await Communicator.initAll([0]))[0] as Communicator
    const prepared = (await prepare?.()) as never
    const wasCalled = failNext(name, status)
    const error = await failure(() => call(prepared))
    expect(wasCalled()).toBe(true)
    expect(error).toBeInstanceOf(StatusError)
    expect(error).toMatchObject({ library: 'NCCL', api: name, status, code: 'ncclInvalidArgument' })
    for (const end of cleanUp.splice(0).reverse()) await failure(end)
    await failure(() => own.destroy())
    // No group stays open on this thread, unless the call to end it was not made.
    const left = name === 'ncclGroupSimulateEnd' ? ncclResult_t.ncclSuccess : ncclResult_t.ncclInvalidUsage
    expect(ncclGroupEnd()).toBe(left)
  })
  // The collector frees memory that NCCL reads at the end of a group.
  expect(kept).toEqual(name === 'ncclWaitSignal' ? [16] : [])
})

test('a parameter larger than its buffer is read again, or throws', () => {
  const parameter = NcclParameter.bind('NCCL_DEBUG')
  const { bytes } = parameter
  failNext('ncclParamGet', ncclResult_t.ncclInvalidArgument)
  expect(parameter.bytes).toEqual(bytes)
  failNext('ncclParamGet', ncclResult_t.ncclSystemError)
  expect(() => parameter.bytes).toThrow('ncclParamGet failed: ncclSystemError')
})
