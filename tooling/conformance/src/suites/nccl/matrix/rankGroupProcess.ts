// A process of one or more ranks of one communicator, for the cases in matrix.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { Device, DeviceBuffer, type Stream } from '@shoal/driver'
import { Communicator, group, ncclVersion, UniqueId, type Window } from '@shoal/nccl'
import { answerCommands } from '../../../support/child.js'
import { knownFault } from './knownFaults.js'
import { type Place, RankRun } from './rankRun.js'
import { describeTrial, type Trial } from './trial.js'
import { TrialValues } from './trialValues.js'

/** What a process is to be. */
export interface RankGroup {
  readonly worldSize: number
  /** Its ranks; each has the device of its number, unless others are named. */
  readonly ranks: readonly number[]
  readonly devices?: readonly number[] | undefined
  /** Milliseconds to wait for the others. */
  readonly timeLimit?: number | undefined
  /** The unique id; undefined where all ranks are in one process. */
  readonly id: string | undefined
  /** Whether calls of NCCL wait until they are done, as they do where nothing else is asked for. */
  readonly blocking?: boolean | undefined
}

/** What came of some trials. */
export interface TrialReport {
  readonly done: number
  /** Parts in trials that were left out because NCCL is known to fail in them, by reason. */
  readonly leftOut: Readonly<Record<string, number>>
  readonly wrongCount: number
  /** The first few. */
  readonly failures: readonly string[]
}

const mostFailures = 5
const timeout = 30_000

let places: Place[] = []

async function join(rankGroup: RankGroup): Promise<void> {
  const { worldSize, ranks, devices: ordinals = ranks, id, timeLimit = timeout, blocking } = rankGroup
  const devices = ordinals.map((ordinal) => Device.get(ordinal))
  const config = blocking === undefined ? {} : { config: { blocking } }
  const communicators =
    id === undefined
      ? await Communicator.initAll(devices, config)
      : await Promise.all(
          ranks.map((rank, index) => {
            const device = devices[index] as Device
            const options = { device, rank, worldSize, id: UniqueId.fromBase64(id), timeout: timeLimit, ...config }
            return Communicator.initRank(options)
          }),
        )
  places = communicators.map((communicator, index) => {
    const device = devices[index] as Device
    const stream: Stream = device.createStream({ nonBlocking: true })
    return { communicator, device, stream, rank: ranks[index] as number, worldSize }
  })
}

function faultOf(trial: Trial, { device, worldSize, window }: Place): string | undefined {
  if (device.isSoftware) return undefined
  return knownFault(trial, { version: ncclVersion().value, worldSize, inWindow: window !== undefined })
}

async function run(trials: readonly Trial[]): Promise<TrialReport> {
  const failures: string[] = []
  const leftOut: Record<string, number> = {}
  let done = 0
  let wrongCount = 0
  for (const trial of trials) {
    // All ranks of a communicator leave out the same, so that none waits for another.
    const taking = places.filter((place) => {
      const fault = faultOf(trial, place)
      if (fault !== undefined) leftOut[fault] = (leftOut[fault] ?? 0) + 1
      return fault === undefined
    })
    const runs: RankRun[] = []
    try {
      // Ranks of a process may be of communicators of several sizes.
      const values = new Map<number, TrialValues>()
      for (const place of taking) {
        const { worldSize } = place
        const own = values.get(worldSize) ?? new TrialValues(trial, worldSize)
        values.set(worldSize, own)
        runs.push(new RankRun(trial, place, own))
      }
      group(() => {
        for (const one of runs) one.call()
      })
      await Promise.all(taking.map(({ communicator, stream }) => communicator.synchronize(stream, { timeout })))
      for (const [index, one] of runs.entries()) {
        const wrong = await one.check()
        if (wrong === undefined) continue
        const { rank, worldSize } = taking[index] as Place
        wrongCount += 1
        if (failures.length < mostFailures) failures.push(`rank ${rank}, ${describeTrial(trial, worldSize)}: ${wrong}`)
      }
      done += 1
    } catch (error) {
      // After an operation that failed the communicator is of no use: the other ranks have to learn of it.
      await Promise.all(places.map(({ communicator }) => communicator.abort()))
      const what = describeTrial(trial, places[0]?.worldSize ?? 0)
      throw new Error(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    } finally {
      for (const one of runs) one.dispose()
    }
    // Messages of the parent come in between.
    if (done % 64 === 0) await sleep(0)
  }
  return { done, leftOut, wrongCount, failures }
}

/** A communicator made of another one, in its place: what each process does for it. */
export type Derivation =
  | { readonly kind: 'split' }
  | { readonly kind: 'shrink'; readonly exclude: readonly number[] }
  | { readonly kind: 'grow'; readonly worldSize: number; readonly id: string | undefined }
  | { readonly kind: 'joinGrown'; readonly worldSize: number; readonly id: string; readonly rank: number }

/** Communicators that others were made of, to be destroyed after them. */
const parents: Communicator[] = []

/** Those of even and of odd rank part, and stand in the other order. */
async function derive(derivation: Derivation): Promise<{ rank: number; worldSize: number }[]> {
  if (derivation.kind === 'joinGrown') {
    const { rank, worldSize } = derivation
    const device = Device.get(rank)
    const id = UniqueId.fromBase64(derivation.id)
    const communicator = await Communicator.joinGrown({ device, rank, worldSize, id, timeout })
    places = [placeOf(communicator, device)]
  } else {
    parents.push(...places.map(({ communicator }) => communicator))
    const made = await Promise.all(
      places.map(async (place) => ({ place, communicator: await child(place, derivation) })),
    )
    places = made.flatMap(({ place, communicator }) => {
      place.stream.dispose()
      return communicator === undefined ? [] : [placeOf(communicator, place.device)]
    })
  }
  return places.map(({ rank, worldSize }) => ({ rank, worldSize }))
}

async function child(
  { communicator, rank }: Place,
  derivation: Exclude<Derivation, { readonly kind: 'joinGrown' }>,
): Promise<Communicator | undefined> {
  switch (derivation.kind) {
    case 'split':
      return communicator.split({ color: rank % 2, key: -rank, timeout })
    case 'shrink':
      if (derivation.exclude.includes(rank)) return undefined
      return communicator.shrink({ exclude: derivation.exclude, timeout })
    case 'grow': {
      const { worldSize, id } = derivation
      return communicator.grow({ worldSize, timeout, ...(id === undefined ? {} : { id: UniqueId.fromBase64(id) }) })
    }
  }
}

function placeOf(communicator: Communicator, device: Device): Place {
  const { rank, worldSize } = communicator
  return { communicator, device, stream: device.createStream({ nonBlocking: true }), rank, worldSize }
}

/** What ends with its communicator, and memory that does not. */
const opened: (() => Promise<void>)[] = []

/** Gives each rank memory that NCCL knows: a window open to the others, or memory that was registered. */
async function open({
  kind,
  bytes,
}: {
  readonly kind: 'window' | 'registered'
  readonly bytes: number
}): Promise<void> {
  places = await Promise.all(
    places.map(async (place) => {
      const { communicator, device } = place
      if (kind === 'registered') {
        const arena = DeviceBuffer.allocate(device, 'u8', bytes)
        const registration = communicator.register(arena)
        opened.push(async () => {
          registration.dispose()
          arena.dispose()
        })
        return { ...place, arena }
      }
      const memory = await communicator.allocate(bytes)
      const window = await communicator.registerWindow(memory)
      opened.push(async () => {
        await window.dispose()
        await memory.free()
      })
      return { ...place, arena: DeviceBuffer.view(device, memory, 'u8'), window }
    }),
  )
}

/** Each rank writes into the window of the next one and signals it, many times. */
async function putAround(rounds: number): Promise<string[]> {
  const length = 1000
  const failures: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    const open = places as (Place & { readonly window: Window; readonly arena: DeviceBuffer<'u8'> })[]
    // Where the barrier's own buffers are not: the next rank may be ahead.
    const from = 4096
    const to = (open[0]?.arena.length ?? 0) / 2 + 4096
    for (const { arena, rank } of open) {
      const values = Int32Array.from({ length }, (_, index) => round * 1_000_000 + rank * 10_000 + index)
      arena
        .slice(from, from + 4 * length)
        .reinterpret('i32')
        .copyFromSync(values)
    }
    group(() => {
      for (const { communicator, stream, rank, worldSize, window, arena } of open) {
        const source = arena.slice(from, from + 4 * length).reinterpret('i32')
        communicator.putSignal(source, { window, offset: to, peer: (rank + 1) % worldSize, stream })
      }
    })
    group(() => {
      for (const { communicator, stream, rank, worldSize } of open) {
        communicator.waitSignal({ peer: (rank + worldSize - 1) % worldSize }, { stream })
      }
    })
    await Promise.all(open.map(({ communicator, stream }) => communicator.synchronize(stream, { timeout })))
    for (const { arena, rank, worldSize } of open) {
      const got = arena
        .slice(to, to + 4 * length)
        .reinterpret('i32')
        .toArraySync()
      const sender = (rank + worldSize - 1) % worldSize
      const at = got.findIndex((value, index) => value !== round * 1_000_000 + sender * 10_000 + index)
      if (at >= 0) failures.push(`rank ${rank}, round ${round}: element ${at} is ${got[at]}`)
    }
    // Nobody overwrites what another one still looks at.
    const { failures: wrong } = await run([barrier])
    failures.push(...wrong)
  }
  return failures
}

/** No rank's ends before all have begun. */
const barrier: Trial = {
  collective: 'allReduce',
  dtype: 'i32',
  op: 'sum',
  count: 1,
  inPlace: false,
  root: 0,
  seed: 0,
}

/** Each rank reads the memory of every other one through its window, where its device reaches it. */
async function readPeers(): Promise<{ read: number; failures: string[] }> {
  const failures: string[] = []
  let read = 0
  const open = places as (Place & { readonly window: Window; readonly arena: DeviceBuffer<'u8'> })[]
  // Where the barrier's own buffers are not.
  const place = (open[0]?.arena.length ?? 0) / 2 - 64
  for (const { arena, rank } of open) arena.slice(place, place + 64).fillSync(rank + 1)
  await run([barrier])
  for (const { device, rank, worldSize, window } of open) {
    for (let peer = 0; peer < worldSize; peer += 1) {
      const memory = window.peerMemory(peer)
      if (memory === undefined) continue
      read += 1
      const [first] = DeviceBuffer.view(device, memory, 'u8')
        .slice(place, place + 1)
        .toArraySync()
      if (first !== peer + 1) failures.push(`rank ${rank} reads ${first} in the window of rank ${peer}`)
    }
  }
  await run([barrier])
  return { read, failures }
}

/** What became of something that waits for other ranks. */
export interface Outcome {
  /** Undefined where it did not fail. */
  readonly name: string | undefined
  readonly message: string
  readonly milliseconds: number
}

async function outcomeOf(work: () => Promise<unknown>): Promise<Outcome> {
  const start = performance.now()
  const milliseconds = (): number => performance.now() - start
  try {
    await work()
    return { name: undefined, message: '', milliseconds: milliseconds() }
  } catch (error) {
    const { name, message } = error as Error
    return { name, message, milliseconds: milliseconds() }
  }
}

/** A rank waits for one that does not come, and all revoke their communicators; then they make new ones of them. */
async function revoke(): Promise<string[]> {
  await run([barrier])
  const { communicator, device, stream, rank } = places[0] as Place
  const buffer = DeviceBuffer.zeros(device, 'f32', 1000)
  const waiting =
    rank !== 0
      ? undefined
      : outcomeOf(() => {
          communicator.allReduce(buffer, buffer, { stream })
          return communicator.synchronize(stream)
        })
  await Promise.all(places.map((place) => place.communicator.revoke({ timeout })))
  const ended = await waiting
  buffer.dispose()
  parents.push(...places.map((place) => place.communicator))
  const { failures } = await outcomesOfLateCalls()
  const made = await Promise.all(
    places.map(async (place) => ({ place, communicator: await place.communicator.split({ color: 0, timeout }) })),
  )
  places = made.flatMap(({ place, communicator: part }) => {
    place.stream.dispose()
    return part === undefined ? [] : [placeOf(part, place.device)]
  })
  if (ended !== undefined && ended.name !== 'CommunicatorAbortedError') failures.push(`the wait: ${ended.name}`)
  return failures
}

/** Each gives its memory back, takes no work meanwhile, and has it again. */
async function suspend(): Promise<{ failures: string[]; suspendable: string }> {
  await run([barrier])
  const first = (places[0] as Place).communicator
  const before = first.memoryStatistics()
  await Promise.all(places.map(({ communicator }) => communicator.suspend({ timeout })))
  const { failures } = await outcomesOfLateCalls()
  if (!first.memoryStatistics().isSuspended) failures.push('is not suspended')
  await Promise.all(places.map(({ communicator }) => communicator.resume({ timeout })))
  if (first.memoryStatistics().isSuspended) failures.push('is still suspended')
  return { failures, suspendable: String(before.suspendable) }
}

/** An operation of a communicator that takes none: which ones were not refused. */
async function outcomesOfLateCalls(): Promise<{ failures: string[] }> {
  const failures: string[] = []
  for (const { communicator, device, stream, rank } of places) {
    const buffer = DeviceBuffer.zeros(device, 'f32', 1000)
    const { name } = await outcomeOf(async () => communicator.allReduce(buffer, buffer, { stream }))
    if (name !== 'CommunicatorStateError') failures.push(`rank ${rank}, an operation: ${name}`)
    buffer.dispose()
  }
  return { failures }
}

/** All-reduces without end, until one fails. */
async function untilItFails(timeLimit: number): Promise<Outcome> {
  const { communicator, device, stream } = places[0] as Place
  const buffer = DeviceBuffer.zeros(device, 'f32', 100_000)
  const outcome = await outcomeOf(async () => {
    for (;;) {
      communicator.allReduce(buffer, buffer, { stream })
      await communicator.synchronize(stream, { timeout: timeLimit })
    }
  })
  buffer.dispose()
  stream.dispose()
  places = []
  return outcome
}

async function destroyWithin(timeLimit: number): Promise<Outcome> {
  const { communicator, stream } = places[0] as Place
  const outcome = await outcomeOf(() => communicator.destroy({ timeout: timeLimit }))
  stream.dispose()
  places = []
  return outcome
}

async function leave(): Promise<void> {
  for (const close of opened.splice(0).reverse()) await close()
  await Promise.all(places.map(({ communicator }) => communicator.destroy()))
  for (const { stream } of places) stream.dispose()
  places = []
  await Promise.all(parents.splice(0).map((communicator) => communicator.destroy()))
}

answerCommands({
  createId: () => UniqueId.create().toString(),
  createGrowId: () => (places[0] as Place).communicator.createUniqueId().toString(),
  join,
  run,
  derive,
  open,
  putAround,
  readPeers,
  revoke,
  suspend,
  joinIfPossible: (rankGroup: RankGroup) => outcomeOf(() => join(rankGroup)),
  untilItFails,
  destroyWithin,
  leave,
})
