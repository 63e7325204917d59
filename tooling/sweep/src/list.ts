// Reads the lists in `questions`, in the notation of README.md, and turns each group into steps.
import { readFileSync } from 'node:fs'
import { expand, match, split } from './lines.js'
import type { Spec } from './spec.js'
import type { Argument, Comparison, Group, Out, Step, Value } from './steps.js'

const folder = new URL('../questions/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8')

/** Returns the groups of a library. The same spec always gives the same groups. */
export function groupsOf(spec: Spec): Group[] {
  return readGroups(spec, `${read('shared.txt')}\n${read(`${spec.library}.txt`)}`)
}

/** Returns the groups that a text describes. */
export function readGroups(spec: Spec, text: string): Group[] {
  const list = new List(spec)
  for (const line of expand(text, spec)) {
    if (line.inner.length > 0) throw new Error(`"${line.text}" has nothing below it`)
    list.read(line.text)
  }
  return list.groups
}

/** Functions by library, and families of names, that look like questions but are not asked. Each has a reason. */
export const notAsked = JSON.parse(read('notAsked.json')) as Readonly<
  Record<'functions' | 'families', Readonly<Record<Spec['library'], Readonly<Record<string, string>>>>>
>

const outPattern =
  /^(?<sign>[*@])(?<type>\w[\w ]*(?: \*+)?)(?:\[(?<count>#?\w+)\])?(?:=(?<initial>\d+))?(?:>(?<save>\w+))? ?(?<follow>->texts?(?:\((?<table>\d)\))?)?(?:~(?<compare>\w+(?:\(\w+\))?))?(?:\{(?<fields>.*)\})?$/

class List {
  readonly groups: Group[] = []
  readonly #spec: Spec
  readonly #comparisons = new Map<string, Comparison>()

  constructor(spec: Spec) {
    this.#spec = spec
  }

  read(text: string): void {
    const [word = '', rest = ''] = match(/^(\S+)\s*(.*)$/, text)
    if (word === 'compare') this.#compare(rest)
    else if (word === 'group') this.#begin(rest)
    else if (word === 'let') this.#add(this.#memory(rest))
    else this.#add(word === 'do' ? this.#call(rest, true) : this.#call(text, false))
  }

  #compare(text: string): void {
    const [name = '', how = '', reason = ''] = match(/^(\w+) (presence|similar|ignored) (.*)$/, text)
    this.#comparisons.set(name, { how: how as 'presence', reason })
  }

  #begin(text: string): void {
    const [name = '', devices = '1', optional] = match(/^(\S+)(?: devices=(\d))?(?: optional="(.*)")?$/, text)
    const reason = optional === undefined ? {} : { optional }
    this.groups.push({ name, library: this.#spec.library, devices: Number(devices), ...reason, steps: [] })
  }

  #add(step: Step): void {
    this.#known(this.groups.at(-1), 'a step stands before the first group').steps.push(step)
  }

  #memory(text: string): Step {
    const [name = '', type = '', count = '1', all = ''] = match(/^(\w+) (\w+)(?:\[(\d+)\])?(?: (.*))?$/, text)
    const fields = split(all).map((field): [string, Value] => {
      const [path = '', value = ''] = match(/^([\w.]+)=(.*)$/, field)
      return [path, this.#value(value)]
    })
    const needs = fields.flatMap(([, value]) => neededBy(value))
    return { kind: 'memory', name, type, count: Number(count), fields, needs }
  }

  /** Throws for a function that the spec does not have, because list and spec are maintained together. */
  #call(text: string, setup: boolean): Step {
    const [name = '', inside = ''] = match(/^(\w+)\((.*)\)$/, text)
    const values = split(inside).map((one) => this.#argument(one))
    const { parameters } = this.#spec.function(name)
    if (parameters.length !== values.length)
      throw new Error(`${name} has ${parameters.length} parameters, the list gives ${values.length}`)
    return { kind: 'call', function: name, arguments: values, needs: values.flatMap(neededBy), setup }
  }

  #argument(text: string): Argument {
    if (text === 'NULL') return { kind: 'null' }
    if (text.startsWith('"')) return { kind: 'text', value: text.slice(1, -1) }
    if (text.startsWith('file:')) return { kind: 'file', name: text.slice(5) }
    if (text.startsWith('[')) return { kind: 'outs', items: split(text.slice(1, -1)).map((one) => this.#out(one)) }
    if (text.startsWith('{')) return this.#members(split(text.slice(1, -1)))
    return /^[*@]/.test(text) ? this.#out(text) : this.#value(text)
  }

  /** Returns all members of an enumeration, or some of them. */
  #members(names: string[]): Argument {
    const [first = ''] = names
    if (this.#spec.isEnumeration(first))
      return { kind: 'members', enumeration: first, names: this.#spec.members(first) }
    const enumeration = this.#known(this.#spec.enumerationOf(first), `no enumeration has ${first}`)
    return { kind: 'members', enumeration, names }
  }

  #value(text: string): Value {
    if (/^-?\d/.test(text)) return { kind: 'integer', value: Number(text) }
    if (text.startsWith('#')) return { kind: 'integer', value: this.#spec.members(text.slice(1)).length }
    const enumeration = this.#spec.enumerationOf(text)
    if (enumeration !== undefined) return { kind: 'member', enumeration, name: text }
    const [sign, name = '', plus = '0'] = match(/^(&?)(\w+)(?:\+(\d+))?$/, text)
    return { kind: sign === '&' ? 'address' : 'use', name, plus: Number(plus) }
  }

  #out(text: string): Out {
    const found = this.#known(outPattern.exec(text)?.groups, `${text} is no out-parameter`)
    const { sign, type = '', count = '1', initial, save, follow, table, compare, fields } = found
    const comparison = compare ?? (sign === '@' ? 'handle' : undefined)
    return {
      kind: 'out',
      type: type.trim(),
      count: count.startsWith('#') ? this.#spec.members(count.slice(1)).length : Number(count),
      ...(initial && { initial: Number(initial) }),
      ...(save && { save }),
      ...(follow && { follow: table ? { count: Number(table) } : ('text' as const) }),
      ...(comparison && { compare: this.#comparison(comparison) }),
      ...(fields && { fields: this.#fields(fields) }),
    }
  }

  #fields(text: string): Record<string, Comparison> {
    const fields = split(text).map((field) => match(/^([\w:]+)~(.*)$/, field))
    return Object.fromEntries(fields.map(([name = '', how = '']) => [name, this.#comparison(how)]))
  }

  #comparison(text: string): Comparison {
    const base = /^from\((\w+)\)$/.exec(text)?.[1]
    if (base === undefined) return this.#known(this.#comparisons.get(text), `there is no comparison ${text}`)
    return { how: 'offset', base, reason: 'an address of this process, compared as its distance from the allocation' }
  }

  #known<T>(value: T | null | undefined, problem: string): T {
    if (value === undefined || value === null) throw new Error(`the questions for ${this.#spec.library}: ${problem}`)
    return value
  }
}

function neededBy(value: Argument): string[] {
  return value.kind === 'use' || value.kind === 'address' ? [value.name] : []
}
