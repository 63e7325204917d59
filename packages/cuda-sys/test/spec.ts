import { readFileSync } from 'node:fs'

/** The parts of the generator's spec that tests of the package compare. */
export interface Spec {
  headerVersion: number
  headers: string[]
  functions: {
    name: string
    symbol: string
    lookup: string
    since: number
    header: string
    supersededBy?: string
    platform?: string
    perThreadSymbol?: string
    otherMajors?: number[]
    reason?: string
  }[]
  enums: { name: string }[]
  structs: { name: string }[]
  unbound: { symbol: string; exported: boolean; reason: string }[]
}

export function readSpec(library: 'driver' | 'runtime'): Spec {
  const file = new URL(`../../../tooling/bindgen/spec/${library}.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8')) as Spec
}
