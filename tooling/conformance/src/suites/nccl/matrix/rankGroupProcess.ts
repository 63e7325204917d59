// A process with one or more ranks of one communicator, for the cases in matrix.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { Device, DeviceBuffer, type Stream } from '@shoal/driver'
import { Communicator, group, ncclVersion, UniqueId, type Window } from '@shoal/nccl'
import { answerCommands } from '../../../support/child.js'
import { knownFault } from './knownFaults.js'
import { type Place, RankRun } from './rankRun.js'
import { describeTrial, type Trial } from './trial.js'
import { TrialValues } from './trialValues.js'

/** The role of a process. */
export interface RankGroup {
  readonly worldSize: number
  /** Its ranks. Each rank uses the device of its number, unless `devices` names others. */
  readonly ranks: readonly number[]
  readonly devices?: readonly number[] | undefined
  /** Milliseconds to wait for the other ranks. */
  readonly timeLimit?: number | undefined
  /** The unique id, or undefined if one process has all ranks. */
  readonly id: string | undefined
  /** Whether calls of NCCL wait for their end, as they do by default. */
  readonly blocking?: boolean | undefined
}

/** The result of some trials. */
export interface TrialReport {
  readonly done: number
  /** Parts of trials that were skipped because NCCL is known to fail in them, by reason. */
  readonly leftOut: Readonly<Record<string, number>>
  readonly wrongCount: number
  /** The first few failures. */
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
    // All ranks of a communicator skip the same trials, so that none waits for another.
    const taking = places.filter((place) => {
      const fault = faultOf(trial, place)
      if (fault !== undefined) leftOut[fault] = (leftOut[fault] ?? 0) + 1
      return fault === undefined
    })
    const runs: RankRun[] = []
    try {
      // The ranks of a process may belong to communicators of several sizes.
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
      // A communicator is unusable after a failed operation. Aborting it tells the other ranks.
      await Promise.all(places.map(({ communicator }) => communicator.abort()))
      const what = describeTrial(trial, places[0]?.worldSize ?? 0)
      throw new Error(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    } finally {
      for (const one of runs) one.dispose()
    }
    // Lets messages of the parent arrive.
    if (done % 64 === 0) await sleep(0)
  }
  return { done, leftOut, wrongCount, failures }
}

/** How a process derives a new communicator, which replaces its communicator. */
export type Derivation =
  | { readonly kind: 'split' }
  | { readonly kind: 'shrink'; readonly exclude: readonly number[] }
  | { readonly kind: 'grow'; readonly worldSize: number; readonly id: string | undefined }
  | { readonly kind: 'joinGrown'; readonly worldSize: number; readonly id: string; readonly rank: number }

/** Communicators that others were derived from. They must be destroyed after those. */
const parents: Communicator[] = []

/** Splits the ranks into even and odd ranks, in reverse order, or shrinks or grows the communicator. */
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

/** Functions that close windows and registrations, and free their memory. */
const opened: (() => Promise<void>)[] = []

/** Gives each rank memory that NCCL knows: a window that the other ranks opened too, or registered memory. */
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

/** Makes each rank write into the window of the next rank and signal it, many times. */
async function putAround(rounds: number): Promise<string[]> {
  const length = 1000
  const failures: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    const open = places as (Place & { readonly window: Window; readonly arena: DeviceBuffer<'u8'> })[]
    // These bytes do not overlap the barrier's buffers, because the next rank may already be at the barrier.
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
    // The barrier keeps a rank from overwriting data that another rank still reads.
    const { failures: wrong } = await run([barrier])
    failures.push(...wrong)
  }
  return failures
}

/** An operation that ends on no rank before all ranks have started it. */
const barrier: Trial = {
  collective: 'allReduce',
  dtype: 'i32',
  op: 'sum',
  count: 1,
  inPlace: false,
  root: 0,
  seed: 0,
}

/** Makes each rank read the memory of every other rank through its window, if its device can reach it. */
async function readPeers(): Promise<{ read: number; failures: string[] }> {
  const failures: string[] = []
  let read = 0
  const open = places as (Place & { readonly window: Window; readonly arena: DeviceBuffer<'u8'> })[]
  // This place does not overlap the barrier's buffers.
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

/** The result of a wait for other ranks. */
export interface Outcome {
  /** Undefined if the wait did not fail. */
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

/**
 * One rank waits for an operation that the others never start. Then all ranks revoke their communicators and create new
 * ones from them.
 */
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

/** Each rank suspends its communicator, which frees memory and refuses work, and then resumes it. */
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

/** Calls an operation on communicators that must refuse it. Returns the operations that were not refused. */
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

/** Repeats all-reduces until one fails. */
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
