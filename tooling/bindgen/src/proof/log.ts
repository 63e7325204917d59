// Reads the recorder's log, and sets the results that the recorder returns.

import type { FunctionSpec } from '../spec/types.js'
import { type RecorderSymbol, recordedBytes } from './abi.js'
import { logLayout } from './recorder.js'
import type { Value } from './values.js'

export interface LogEntry {
  readonly id: number
  readonly bytes: Uint8Array
}

export class Log {
  readonly #data: DataView
  readonly #bytes: Uint8Array

  constructor(buffer: ArrayBuffer) {
    this.#data = new DataView(buffer)
    this.#bytes = new Uint8Array(buffer)
  }

  /** Sets whether text arguments point to text, and whether the loader's functions do their work. */
  set(follow: boolean, loader: boolean): void {
    this.#data.setUint32(logLayout.follow, Number(follow), true)
    this.#data.setUint32(logLayout.loader, Number(loader), true)
  }

  setResult(bytes: Uint8Array): void {
    this.#bytes.set(bytes, logLayout.result)
  }

  clear(): void {
    this.#data.setBigUint64(logLayout.used, 0n, true)
  }

  get isEmpty(): boolean {
    return this.#data.getBigUint64(logLayout.used, true) === 0n
  }

  /** Copies of all entries since the last `clear()`. */
  entries(): LogEntry[] {
    const found: LogEntry[] = []
    const end = logLayout.entries + Number(this.#data.getBigUint64(logLayout.used, true))
    for (let at = logLayout.entries; at < end; ) {
      const id = this.#data.getUint32(at, true)
      const length = this.#data.getUint32(at + 4, true)
      found.push({ id, bytes: this.#bytes.slice(at + 8, at + 8 + length) })
      at += (8 + length + 7) & ~7
    }
    return found
  }
}

const hex = (bytes: Uint8Array): string => (bytes.length === 0 ? 'nothing' : Buffer.from(bytes).toString('hex'))

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0
}

function holdsNaN(bytes: Uint8Array): boolean {
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Number.isNaN(bytes.length === 4 ? data.getFloat32(0, true) : data.getFloat64(0, true))
}

/** All differences between the passed arguments and a log entry. */
export function compareArguments(
  entry: FunctionSpec,
  values: readonly Value[],
  logged: LogEntry,
  symbols: readonly RecorderSymbol[],
  wanted: string,
): string[] {
  const entered = symbols[logged.id]?.symbol
  if (entered !== wanted) return [`${entered ?? `function ${logged.id}`} was entered, not ${wanted}`]
  const differences: string[] = []
  let at = 0
  const take = (count: number): Uint8Array => {
    const part = logged.bytes.subarray(at, at + count)
    at += count
    return part
  }
  entry.parameters.forEach(({ name, lowered }, index) => {
    const value = values[index] as Value
    const arrived = take(recordedBytes(lowered))
    const differs = (what: string, expected: Uint8Array, got: Uint8Array): void => {
      differences.push(`argument ${index} (${name})${what}: ${hex(expected)} was handed over, ${hex(got)} arrived`)
    }
    if (value.text !== undefined) {
      const length = take(4)
      const text = take(length.length < 4 ? 0 : new DataView(length.buffer, length.byteOffset, 4).getUint32(0, true))
      if (!same(text, value.text)) differs(', text', value.text, text)
      return
    }
    const expected = value.bytes()
    if (same(arrived, expected)) return
    // A JavaScript number does not preserve the bits of a NaN.
    const isLoose = lowered.kind === 'float' && Number.isNaN(value.js) && arrived.length === expected.length
    if (!isLoose || !holdsNaN(arrived)) differs('', expected, arrived)
  })
  if (at !== logged.bytes.length)
    differences.push(`${at} bytes of arguments were handed over, ${logged.bytes.length} arrived`)
  return differences
}
