import { UsageError } from '../command.js'

const suffixes: { readonly [suffix: string]: number } = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }

/** Bytes from `8`, `64K`, `16M`, `1G`; with or without `iB` or `B` behind. */
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
  /** The next size is the last one times this; unused where there is a step. */
  readonly factor: number
  /** The next size is the last one plus this. */
  readonly step: number | undefined
}

/** Rows of more sizes would fill the memory. */
const mostSizes = 10_000

/** @throws UsageError for steps that are too small for their range. */
export function requireFewSizes({ least, most, step }: Sweep): void {
  if (step === undefined) return
  const count = Math.floor((most - least) / step) + 1
  if (count <= mostSizes) return
  throw new UsageError(
    `--step-bytes ${step} makes ${count} sizes of ${least} … ${most} bytes; ${mostSizes} are the most`,
  )
}

/** The sizes of a sweep, ascending; both ends count. */
export function sizesOf({ least, most, factor, step }: Sweep): number[] {
  const sizes: number[] = []
  for (let bytes = least; bytes <= most; bytes = step === undefined ? bytes * factor : bytes + step) sizes.push(bytes)
  return sizes
}
