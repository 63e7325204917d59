import { UsageError } from '../command.js'

const suffixes: { readonly [suffix: string]: number } = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }

/** Parses a size such as `8`, `64K`, `16M` or `1G`; `iB` or `B` may follow. */
export function parseBytes(text: string, option: string): number {
  const [, digits, suffix = ''] = /^(\d+)([KMG]?)(?:i?B)?$/i.exec(text) ?? []
  const bytes = Number(digits) * (suffixes[suffix.toUpperCase()] ?? Number.NaN)
  if (!Number.isSafeInteger(bytes) || bytes < 1)
    throw new UsageError(`${option} must be a number of bytes such as 8, 64K, 16M or 1G, got ${text}`)
  return bytes
}

export interface Sweep {
  readonly least: number
  readonly most: number
  /** Factor from one size to the next; unused if there is a step. */
  readonly factor: number
  /** Bytes from one size to the next. */
  readonly step: number | undefined
}

/** Most sizes, so that rows do not fill the memory. */
const mostSizes = 10_000

/** Limits the number of sizes. @throws UsageError for steps that are too small for their range */
export function requireFewSizes({ least, most, step }: Sweep): void {
  if (step === undefined) return
  const count = Math.floor((most - least) / step) + 1
  if (count <= mostSizes) return
  throw new UsageError(
    `--step-bytes ${step} makes ${count} sizes of ${least} … ${most} bytes; ${mostSizes} are the most`,
  )
}

/** Returns the sizes of a sweep, ascending, including both ends. */
export function sizesOf({ least, most, factor, step }: Sweep): number[] {
  const sizes: number[] = []
  for (let bytes = least; bytes <= most; bytes = step === undefined ? bytes * factor : bytes + step) sizes.push(bytes)
  return sizes
}
