import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { layoutOf, type ModelSize, type Training } from './model.js'

const format = 'shoal gpt 1'

/** A training at the end of a step. */
export interface Checkpoint {
  readonly size: ModelSize
  /** `batch` is that of all ranks together, which may be others next time. */
  readonly training: Training
  readonly characters: readonly string[]
  /** Of all steps so far. */
  readonly losses: readonly number[]
  /** See {@link Trainer.state}. */
  readonly state: Float32Array
}

/**
 * A line of JSON, then the state. It is written aside and renamed: a process that is killed leaves the last one whole.
 */
export function writeCheckpoint(file: string, { state, ...facts }: Checkpoint): void {
  const head = Buffer.from(`${JSON.stringify({ format, ...facts, length: state.length })}\n`)
  writeFileSync(`${file}.new`, Buffer.concat([head, Buffer.from(state.buffer, state.byteOffset, state.byteLength)]))
  renameSync(`${file}.new`, file)
}

/** @throws RangeError for a file that is no checkpoint or is truncated */
export function readCheckpoint(file: string): Checkpoint {
  const bytes = readFileSync(file)
  const end = bytes.indexOf('\n')
  const head = bytes.toString('utf8', 0, Math.max(0, end))
  if (!head.startsWith(`{"format":"${format}"`)) throw new RangeError(`${file} is no checkpoint`)
  const {
    format: _,
    length,
    ...facts
  } = JSON.parse(head) as Omit<Checkpoint, 'state'> & {
    format: string
    length: number
  }
  const content = bytes.subarray(end + 1)
  if (content.length !== 4 * length || length < 3 * layoutOf(facts.size).count)
    throw new RangeError(`${file} is not whole`)
  return { ...facts, state: new Float32Array(new Uint8Array(content).buffer) }
}
