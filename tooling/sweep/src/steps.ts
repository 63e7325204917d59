// The steps of the list: plain data that both sides execute, see README.md.
import type { LibraryName } from '@shoal/bindgen/dist/spec/types.js'

/** How two answers are compared if their bytes always differ. */
export type Comparison =
  /** a handle or an address: both sides have one, or both have zero */
  | { how: 'presence'; reason: string }
  /** an address: the same distance from a value that was kept earlier */
  | { how: 'offset'; base: string; reason: string }
  /** a number: both sides have zero, or their numbers are within a factor of two */
  | { how: 'similar'; reason: string }
  /** memory without meaning */
  | { how: 'ignored'; reason: string }

export interface Out {
  kind: 'out'
  /** the C type of one element */
  type: string
  count: number
  /** the number that it holds before the call; the default is 0xa5 in every byte */
  initial?: number
  /** the name that keeps the bytes for later steps if the call succeeds */
  save?: string
  /** a pointer to text, or to as many texts as another out-parameter says; the text is compared */
  follow?: 'text' | { count: number }
  compare?: Comparison
  /** comparisons for fields of a struct */
  fields?: Record<string, Comparison>
}

export type Value =
  | { kind: 'integer'; value: number }
  | { kind: 'member'; enumeration: string; name: string }
  /** the bytes of a kept value */
  | { kind: 'use'; name: string; plus: number }
  /** the address of a kept value */
  | { kind: 'address'; name: string; plus: number }

export type Argument =
  | Value
  | Out
  | { kind: 'null' }
  | { kind: 'text'; value: string }
  /** the path of a file in the folder of kernels */
  | { kind: 'file'; name: string }
  /** an array of members of an enumeration */
  | { kind: 'members'; enumeration: string; names: string[] }
  /** an array of pointers to out-parameters */
  | { kind: 'outs'; items: Out[] }

export type Step =
  | { kind: 'call'; function: string; arguments: Argument[]; needs: string[]; setup: boolean }
  /** memory for later steps: a struct with the given fields (`a.b`), or bytes */
  | {
      kind: 'memory'
      name: string
      type: string
      count: number
      fields: [path: string, value: Value][]
      needs: string[]
    }

export interface Group {
  name: string
  library: LibraryName
  /** the number of devices that the group needs */
  devices: number
  /** why hardware may leave questions of this group unasked */
  optional?: string
  steps: Step[]
}

/** Describes a step in words. */
export function describeStep(step: Step): string {
  if (step.kind === 'memory') return `memory ${step.name}`
  return `${step.function}(${step.arguments.map(describeArgument).join(', ')})`
}

function describeArgument(value: Argument): string {
  switch (value.kind) {
    case 'integer':
      return String(value.value)
    case 'member':
      return value.name
    case 'use':
      return value.plus === 0 ? value.name : `${value.name} + ${value.plus}`
    case 'address':
      return value.plus === 0 ? `&${value.name}` : `&${value.name} + ${value.plus}`
    case 'text':
      return JSON.stringify(value.value)
    case 'file':
      return value.name
    case 'members':
      return `{${value.names.join(', ')}}`
    case 'outs':
      return `{${value.items.map(describeArgument).join(', ')}}`
    case 'out':
      return value.count === 1 ? `out ${value.type}` : `out ${value.type}[${value.count}]`
    default:
      return 'NULL'
  }
}

/** Returns the out-parameters of a call in order, including those in arrays. */
export function outsOf(step: Step): Out[] {
  if (step.kind === 'memory') return []
  return step.arguments.flatMap((value) => (value.kind === 'out' ? [value] : value.kind === 'outs' ? value.items : []))
}
