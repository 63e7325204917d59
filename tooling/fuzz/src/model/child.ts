#!/usr/bin/env node
/** A process of a slice. It runs sequences one after the other and reports each seed to its parent. */
import { readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { Session, UniqueId } from '@shoal/nvshmem'
import { runSequence, SequenceFailure } from './sequence.js'
import type { Report, Slice } from './slice.js'
import { RandomWorkers } from './workers.js'

/** Exit status of Node when it awaits a promise that can no longer settle. */
const unsettled = 13
const slice = JSON.parse(process.env['SHOAL_FUZZ_SLICE'] ?? '') as Slice
const session = await Session.init({
  device: 0,
  rank: slice.pe,
  worldSize: slice.pes,
  id: UniqueId.fromBase64(slice.id),
})
const workers = slice.workers
  ? new RandomWorkers(slice.firstSeed, (text) => fail({ kind: 'failure', ...current, text, log: [] }))
  : undefined
let current = { seed: slice.firstSeed, step: 0 }
let operation = ''
process.on('exit', () => {
  // Nothing can settle the awaited promise any more, and no report reaches the parent. Node sets this status in an exit
  // handler that runs earlier.
  if (process.exitCode === unsettled)
    console.error(`seed ${current.seed}, step ${current.step}: ${operation} never settled`)
})
process.on('uncaughtException', (error) => {
  fail({ kind: 'failure', ...current, text: `nobody caught ${error?.stack ?? String(error)}`, log: [] })
})

/** Descriptors that a slice may leave open. There are always some, because streams and workers come and go. */
const mostDescriptors = 150
/**
 * Descriptors that each terminated worker may leave open: one of the software device for each memory that the worker
 * had mapped. That memory stays, because other threads may use it. Sockets and handles of the worker must be closed.
 */
const mostOfWorker = 10
const openDescriptors = (): number => descriptors().length

/**
 * Returns the targets of all open descriptors except source files. If a worker is terminated while it loads, Node
 * leaves the sources that the worker was reading open; 15 of them were seen.
 */
function descriptors(): string[] {
  const links = readdirSync('/proc/self/fd').map((name) => existingLink(`/proc/self/fd/${name}`))
  return links.filter((link) => !/\.[cm]?js$/.test(link))
}

/** Returns the number of open descriptors of each kind, such as `12 socket`. */
function kindsOfDescriptors(): string {
  const kinds = new Map<string, number>()
  for (const link of descriptors()) {
    const kind = link.replace(/:\[\d+\]$|\d+/g, '')
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  }
  return [...kinds].map(([kind, count]) => `${count} ${kind}`).join(', ')
}

function existingLink(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return 'closed meanwhile'
  }
}
let atFirst: number | undefined

/**
 * Returns the number of open descriptors above the limit. The garbage collector closes dropped objects, so their
 * descriptors must not accumulate.
 */
async function descriptorsLeft(): Promise<number> {
  atFirst ??= openDescriptors()
  const most = atFirst + mostDescriptors + mostOfWorker * (workers?.terminated ?? 0)
  for (let tries = 0; tries < 100 && openDescriptors() > most; tries += 1) {
    globalThis.gc?.()
    await pause(10)
  }
  return openDescriptors() - most
}

for (let index = 0; index < slice.sequences; index += 1) {
  const seed = slice.firstSeed + index
  const { steps } = slice
  const only = slice.only === undefined ? undefined : new Set(slice.only)
  tell({ kind: 'began', seed })
  try {
    const onStep = (step: number, name: string): void => {
      current = { seed, step }
      operation = name
      workers?.step()
    }
    await runSequence({ seed, steps, only, session, onStep, beside: workers === undefined ? undefined : 'workers' })
  } catch (error) {
    if (!(error instanceof SequenceFailure)) throw error
    const text = deepest(error).stack ?? error.message
    fail({ kind: 'failure', seed, step: error.step, text, log: error.log })
    await new Promise(() => {})
  }
  const left = await descriptorsLeft()
  if (left > 0) {
    fail({
      kind: 'failure',
      ...current,
      text: `${left} descriptors too many were left open: ${kindsOfDescriptors()}`,
      log: [],
    })
    await new Promise(() => {})
  }
  tell({ kind: 'ended', seed, steps: only?.size ?? steps })
}
await workers?.end()
await session.finalize()
process.disconnect?.()

function deepest(error: Error): Error {
  return error.cause instanceof Error ? deepest(error.cause) : error
}

function tell(report: Report): void {
  process.send?.(report)
}

function fail(report: Report): void {
  process.send?.(report, () => process.exit(1))
}
