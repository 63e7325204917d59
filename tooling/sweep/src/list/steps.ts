// The steps of the list: plain data that both sides carry out, see README.md.
import type { DeviceLibraryName } from '@shoal/bindgen/dist/spec/types.js'
import type { Spec } from '../spec.js'

/** How two answers are compared where their bytes differ by nature. */
export type Comparison =
  /** a handle or an address: both are there or both are zero */
  | { how: 'presence'; reason: string }
  /** an address: the same distance from a value kept before */
  | { how: 'offset'; base: string; reason: string }
  /** a number: neither or both zero, and within a factor of two */
  | { how: 'similar'; reason: string }
  /** memory without meaning */
  | { how: 'ignored'; reason: string }

export interface Out {
  kind: 'out'
  /** C type of one element */
  type: string
  count: number
  /** number it holds before the call; else every byte is 0xa5 */
  initial?: number
  /** keeps the bytes for later steps, when the call succeeds */
  save?: string
  /** a pointer to text, or to as many texts as another out-parameter says: the text is what counts */
  follow?: 'text' | { count: number }
  compare?: Comparison
  /** for fields of a struct */
  fields?: Record<string, Comparison>
}

export type Value =
  | { kind: 'integer'; value: number }
  | { kind: 'member'; enumeration: string; name: string }
  /** the bytes of a kept value */
  | { kind: 'use'; name: string; plus: number }
  /** where a kept value stands */
  | { kind: 'address'; name: string; plus: number }

export type Argument =
  | Value
  | Out
  | { kind: 'null' }
  | { kind: 'text'; value: string }
  /** path of a file in the folder of kernels */
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
  library: DeviceLibraryName
  /** devices without which it is not run */
  devices: number
  /** why its questions may stay unasked on hardware */
  optional?: string
  steps: Step[]
}

export const integer = (value: number): Value => ({ kind: 'integer', value })
export const member = (enumeration: string, name: string): Value => ({ kind: 'member', enumeration, name })
export const use = (name: string, plus = 0): Value => ({ kind: 'use', name, plus })
export const address = (name: string, plus = 0): Value => ({ kind: 'address', name, plus })
export const text = (value: string): Argument => ({ kind: 'text', value })
export const file = (name: string): Argument => ({ kind: 'file', name })
export const none: Argument = { kind: 'null' }

export function out(type: string, options: Partial<Omit<Out, 'kind' | 'type'>> = {}): Out {
  return { kind: 'out', type, count: 1, ...options }
}

/** An out-parameter for a handle: its number is the process's own. */
export const handle = (type: string, save?: string): Out =>
  out(type, { ...(save === undefined ? {} : { save }), compare: presence('a handle of this process') })

export const presence = (reason: string): Comparison => ({ how: 'presence', reason })
export const offset = (base: string): Comparison => ({
  how: 'offset',
  base,
  reason: 'an address of this process, compared as its distance from the allocation',
})
export const similar = (reason: string): Comparison => ({ how: 'similar', reason })
export const ignored = (reason: string): Comparison => ({ how: 'ignored', reason })

/** Collects the steps of one group. */
export class GroupBuilder {
  readonly spec: Spec
  readonly #group: Group

  constructor(spec: Spec, name: string, options: { devices?: number; optional?: string } = {}) {
    this.spec = spec
    const { devices = 1, optional } = options
    this.#group = {
      name,
      library: spec.library,
      devices,
      ...(optional === undefined ? {} : { optional }),
      steps: [],
    }
  }

  /** A question. Functions that the spec does not have stop the list: it is kept with the spec. */
  ask(name: string, ...values: Argument[]): this {
    return this.#call(name, values, false)
  }

  /** A call that only prepares questions. */
  setUp(name: string, ...values: Argument[]): this {
    return this.#call(name, values, true)
  }

  #call(name: string, values: Argument[], setup: boolean): this {
    const { parameters } = this.spec.function(name)
    if (parameters.length !== values.length)
      throw new Error(`${name} has ${parameters.length} parameters, the list gives ${values.length}`)
    for (const value of values) this.#requireMember(value)
    this.#group.steps.push({
      kind: 'call',
      function: name,
      arguments: values,
      needs: values.flatMap((value) => neededBy(value)),
      setup,
    })
    return this
  }

  #requireMember(value: Argument): void {
    const names = value.kind === 'member' ? [value.name] : value.kind === 'members' ? value.names : []
    for (const name of names) this.spec.requireMember((value as { enumeration: string }).enumeration, name)
  }

  /** The same question for every member of an enumeration. */
  each(enumeration: string, ask: (value: Value, name: string) => void): this {
    for (const name of this.spec.members(enumeration)) ask(member(enumeration, name), name)
    return this
  }

  memory(name: string, type: string, fields: Record<string, Value> = {}, count = 1): this {
    for (const value of Object.values(fields)) this.#requireMember(value)
    this.#group.steps.push({
      kind: 'memory',
      name,
      type,
      count,
      fields: Object.entries(fields),
      needs: Object.values(fields).flatMap((value) => neededBy(value)),
    })
    return this
  }

  build(): Group {
    return this.#group
  }
}

function neededBy(value: Argument): string[] {
  return value.kind === 'use' || value.kind === 'address' ? [value.name] : []
}

/** A step for people. */
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

/** The out-parameters of a call in order, those in arrays too. */
export function outsOf(step: Step): Out[] {
  if (step.kind === 'memory') return []
  return step.arguments.flatMap((value) => (value.kind === 'out' ? [value] : value.kind === 'outs' ? value.items : []))
}
