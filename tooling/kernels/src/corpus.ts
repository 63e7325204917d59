/** The cases by file, and the outcome of a run. */
import { readFileSync } from 'node:fs'
import { type Device, Module } from '@shoal/driver'
import { arrays, type Scalar, type Value } from './random.js'
import { Trial } from './trial.js'

export interface KernelCase {
  readonly file: string
  readonly name: string
  run(trial: Trial): Promise<void>
}

/** Adds cases of one file. */
export interface FileCases {
  add(name: string, run: (trial: Trial) => Promise<void>): void
  /** Adds a kernel with one thread per element: `(x, y, …, out, n)`. Without `ulp`, every bit is compared. */
  each(
    name: string,
    inputs: readonly Scalar[],
    output: Scalar,
    of: (...values: never[]) => readonly Value[],
    options?: EachOptions,
  ): void
}

export interface EachOptions {
  /** The largest error of each result, in units of the last place. A list has one for each result. */
  readonly ulp?: number | readonly number[]
  /** The least magnitude that defines a unit of the last place. */
  readonly scale?: number
  /** The inputs, if they are not arbitrary values. */
  readonly values?: (random: Trial['random']) => readonly Value[]
  readonly count?: number
}

export const cases: KernelCase[] = []

export function casesOf(file: string): FileCases {
  const add: FileCases['add'] = (name, run) => void cases.push({ file, name, run })
  return {
    add,
    each(name, inputs, output, of, options = {}) {
      add(name, (trial) => runEach(trial, inputs, output, of as (...values: Value[]) => readonly Value[], options))
    },
  }
}

async function runEach(
  trial: Trial,
  inputs: readonly Scalar[],
  output: Scalar,
  of: (...values: Value[]) => readonly Value[],
  { ulp, scale, values, count }: EachOptions,
): Promise<void> {
  const n = count ?? trial.size()
  const block = trial.random.pick([32, 64, 96, 128, 256])
  const given = inputs.map((type) => trial.array(type, n, values && (() => 0)))
  if (values !== undefined) {
    for (let index = 0; index < n; index += 1) {
      values(trial.random).forEach((value, at) => {
        ;(given[at] as { [index: number]: Value })[index] = value
      })
    }
  }
  const results = Array.from({ length: n }, (_, index) => of(...given.map((list) => list[index] as Value)))
  const width = results[0]?.length as number
  const out = new arrays[output](n * width)
  const found = (await trial.run({ grid: Math.ceil(n / block), block }, ...given, out, n)).at(-1)
  const actual = found as unknown as readonly Value[]
  if (ulp === undefined) {
    const expected = new arrays[output](n * width)
    results.forEach((list, index) => {
      list.forEach((value, at) => {
        ;(expected as { [index: number]: Value })[index * width + at] = value
      })
    })
    const inputsOf = (index: number): string => given.map((list) => String(list[Math.floor(index / width)])).join(', ')
    for (let index = 0; index < expected.length; index += 1) {
      if (Object.is(actual[index], expected[index])) continue
      const [wrong, right] = [actual[index], expected[index]]
      throw new Error(`result ${index % width} of (${inputsOf(index)}) is ${String(wrong)}, not ${String(right)}`)
    }
    trial.compared += expected.length
    return
  }
  for (let at = 0; at < width; at += 1) {
    const real = found as Float32Array | Float64Array
    const mine = real.filter((_, index) => index % width === at) as Float32Array | Float64Array
    const most = typeof ulp === 'number' ? ulp : (ulp[at] as number)
    trial.near(
      mine,
      results.map((list) => list[at] as number),
      most,
      scale,
      `result ${at}`,
    )
  }
}

export interface Outcome {
  readonly file: string
  readonly name: string
  readonly outcome: 'ok' | 'fail' | 'skip'
  /** The number of compared values. */
  readonly compared: number
  /** The largest error and the allowed error, in units of the last place. If both are 0, every bit was compared. */
  readonly worst: number
  readonly allowed: number
  readonly milliseconds: number
  readonly error?: string
}

const folder = new URL('../ptx/', import.meta.url)
export const ptxOf = (file: string): string => readFileSync(new URL(`${file}.ptx`, folder), 'utf8')

/** Runs cases on a device. Each case gets its own seed, derived from `seed`. */
export async function runCases(
  device: Device,
  seed: number,
  chosen = cases,
  report?: (outcome: Outcome) => void,
): Promise<Outcome[]> {
  const modules = new Map<string, Module | Error>()
  const outcomes: Outcome[] = []
  for (const one of chosen) {
    const { file, name } = one
    if (!modules.has(file)) modules.set(file, load(device, file))
    const module = modules.get(file) as Module | Error
    let outcome: Outcome = { file, name, outcome: 'ok', compared: 0, worst: 0, allowed: 0, milliseconds: 0 }
    if (module instanceof Error) {
      outcome = { ...outcome, outcome: isUnsupported(module) ? 'skip' : 'fail', error: module.message }
    } else {
      const started = performance.now()
      const trial = new Trial(device, module, name, seed ^ hash(`${file} ${name}`))
      try {
        await one.run(trial)
        if (trial.compared === 0) throw new Error('it compared nothing')
      } catch (error) {
        outcome = { ...outcome, outcome: 'fail', error: error instanceof Error ? error.message : String(error) }
      }
      trial.dispose()
      const { compared, worst, allowed } = trial
      outcome = { ...outcome, compared, worst, allowed, milliseconds: performance.now() - started }
    }
    report?.(outcome)
    outcomes.push(outcome)
  }
  for (const module of modules.values()) if (module instanceof Module) module.dispose()
  return outcomes
}

function load(device: Device, file: string): Module | Error {
  try {
    return Module.loadSync(device, ptxOf(file))
  } catch (error) {
    return error as Error
  }
}

/** Is true if the device lacks a feature that a module needs. */
const isUnsupported = (error: Error): boolean => 'code' in error && error.code === 'CUDA_ERROR_NO_BINARY_FOR_GPU'

function hash(text: string): number {
  let value = 0
  for (const letter of text) value = (Math.imul(value, 31) + (letter.codePointAt(0) as number)) | 0
  return value
}
