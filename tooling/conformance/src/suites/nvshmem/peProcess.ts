// A process that is one PE, for the cases in matrix.ts.
import assert from 'node:assert/strict'
import { Device, DeviceBuffer } from '@shoal/driver'
import { nvshmemStatus, nvshmemVersion, Session, UniqueId } from '@shoal/nvshmem'
import { answerCommands } from '../../support/child.js'
import { collective } from './collectives.js'
import type { Pe } from './pe.js'
import { type RawTrial, raw } from './raw.js'
import { atomic, contended, getElement, putElement, signal, waitUntil } from './single.js'
import { joint } from './together.js'
import { get, getStrided, put, putSignal, putStrided, type Steps } from './transfers.js'
import { describeTrial, type Trial } from './trial.js'

/** The role of a process. */
export interface Start {
  readonly id: string
  readonly rank: number
  readonly worldSize: number
  /** Bytes of each buffer. */
  readonly bytes: number
}

/** The result of some trials. */
export interface Report {
  readonly done: number
  readonly wrongs: number
  /** The first few failures. */
  readonly failures: readonly string[]
}

const mostFailures = 5
const wait = { timeout: 30_000 }
let pe: Pe | undefined

async function init({ id, rank, worldSize, bytes }: Start): Promise<void> {
  const device = Device.get(rank)
  const session = await Session.init({ device, rank, worldSize, id: UniqueId.fromBase64(id), ...wait })
  assert.ok(['initialized', 'limited-sharing', 'full-sharing'].includes(nvshmemStatus()), nvshmemStatus())
  assert.match(nvshmemVersion().toString(), /^\d+\.\d+/)
  const target = await session.allocate('u8', bytes)
  const source = await session.allocate('u8', bytes)
  const signals = await session.allocate('u64', 64)
  const everySecond = await session.world.splitStrided({ start: 0, stride: 2, size: Math.ceil(worldSize / 2) })
  pe = {
    session,
    device,
    stream: device.createStream({ nonBlocking: true }),
    target,
    source,
    signals,
    local: DeviceBuffer.allocate(device, 'u8', bytes),
    ignore: DeviceBuffer.allocate(device, 'i32', 64),
    teams: { world: session.world, shared: session.shared, node: session.node, everySecond },
  }
}

function stepsOf(on: Pe, trial: Trial | RawTrial): Steps {
  switch (trial.kind) {
    case 'raw':
      return raw(on, trial)
    case 'put':
      return put(on, trial)
    case 'get':
      return get(on, trial)
    case 'putStrided':
      return putStrided(on, trial)
    case 'getStrided':
      return getStrided(on, trial)
    case 'putElement':
      return putElement(on, trial)
    case 'getElement':
      return getElement(on, trial)
    case 'putSignal':
      return putSignal(on, trial)
    case 'atomic':
      return atomic(on, trial)
    case 'contended':
      return contended(on, trial)
    case 'signal':
      return signal(on, trial)
    case 'waitUntil':
    case 'waitUntilAll':
    case 'waitUntilAllVector':
      return waitUntil(on, trial)
    default:
      return collective(on, trial)
  }
}

async function run(trials: readonly (Trial | RawTrial)[]): Promise<Report> {
  if (pe === undefined) throw new Error('there is no session')
  const { session } = pe
  const failures: string[] = []
  let done = 0
  let wrongs = 0
  for (const trial of trials) {
    try {
      const steps = stepsOf(pe, trial)
      steps.prepare()
      await session.barrierAll(wait)
      await steps.act()
      await session.barrierAll(wait)
      const wrong = steps.check()
      if (wrong !== undefined) {
        wrongs += 1
        if (failures.length < mostFailures) failures.push(`PE ${session.pe}, ${describeTrial(trial)}: ${wrong}`)
      }
      done += 1
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new Error(`PE ${session.pe}, ${describeTrial(trial)}: ${reason}`, { cause: error })
    }
  }
  return { done, wrongs, failures }
}

async function together({ name, seed }: { readonly name: string; readonly seed: number }): Promise<void> {
  if (pe === undefined) throw new Error('there is no session')
  await joint[name]?.(pe, seed)
}

/** The result of a wait for other PEs. */
export interface Outcome {
  /** Undefined if the wait did not fail. */
  readonly name: string | undefined
  readonly message: string
  readonly milliseconds: number
}

async function outcomeOf(work: () => Promise<unknown>): Promise<Outcome> {
  const start = performance.now()
  const ended = (name: string | undefined, message: string): Outcome => ({
    name,
    message,
    milliseconds: performance.now() - start,
  })
  try {
    await work()
    return ended(undefined, '')
  } catch (error) {
    return ended((error as Error).name, (error as Error).message)
  }
}

const initIfPossible = ({ id, rank, worldSize, timeout }: Start & { readonly timeout: number }): Promise<Outcome> =>
  outcomeOf(() => Session.init({ device: rank, rank, worldSize, id: UniqueId.fromBase64(id), timeout }))

/** Waits for the other PEs in one of the possible ways, then abandons the session. */
async function waitIfPossible({ way, timeout }: { readonly way: string; readonly timeout: number }): Promise<Outcome> {
  if (pe === undefined) throw new Error('there is no session')
  const { session, stream, target, source } = pe
  const ways: Readonly<Record<string, () => Promise<unknown>>> = {
    barrier: () => session.barrierAll({ timeout }),
    reduce: () =>
      session.world.reduce(target.reinterpret('i32'), source.reinterpret('i32'), { op: 'sum', count: 100, timeout }),
    finalize: () => session.finalize({ timeout }),
  }
  const outcome = await outcomeOf(ways[way] ?? (() => Promise.reject(new Error(`there is no way ${way}`))))
  if (outcome.name === undefined) {
    pe.local.dispose()
    pe.ignore.dispose()
    stream.dispose()
  } else {
    // Nothing is freed: a kernel may wait for the lost PE, and cuMemFree would wait for that kernel.
    session.abandon()
  }
  pe = undefined
  return outcome
}

async function finish(): Promise<void> {
  if (pe === undefined) return
  const { session, stream, target, source, signals, local, ignore, teams } = pe
  await teams.everySecond?.dispose(wait)
  await target.dispose(wait)
  await source.dispose(wait)
  await signals.dispose(wait)
  local.dispose()
  ignore.dispose()
  stream.dispose()
  await session.finalize(wait)
  pe = undefined
}

answerCommands({
  createId: () => UniqueId.create().toString(),
  init,
  initIfPossible,
  run,
  together,
  waitIfPossible,
  finish,
})
