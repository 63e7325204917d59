// Reads the lists in `questions`: text that README.md explains, of which every group becomes steps.
import { readFileSync } from 'node:fs'
import type { Spec } from './spec.js'
import type { Argument, Comparison, Group, Out, Step, Value } from './steps.js'

const folder = new URL('../questions/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8')

/** The groups of a library, always the same for the same spec. */
export function groupsOf(spec: Spec): Group[] {
  return readGroups(spec, `${read('shared.txt')}\n${read(`${spec.library}.txt`)}`)
}

/** The groups that a text describes. */
export function readGroups(spec: Spec, text: string): Group[] {
  const list = new List(spec)
  list.run(parse(text), new Map())
  return list.groups
}

/** Functions that read like questions and are not asked, with the reason, by library; and families of names. */
export const notAsked = JSON.parse(read('notAsked.json')) as Readonly<
  Record<'functions' | 'families', Readonly<Record<Spec['library'], Readonly<Record<string, string>>>>>
>

/** A line with the lines that are indented below it. */
interface Line {
  readonly text: string
  readonly inner: Line[]
}

/** Lines by indentation, without comments. */
function parse(text: string): readonly Line[] {
  const top: Line = { text: '', inner: [] }
  const open = [{ depth: -1, line: top }]
  for (const raw of text.split('\n')) {
    const trimmed = raw.trim()
    if (trimmed === '' || trimmed.startsWith('#')) continue
    const depth = raw.length - raw.trimStart().length
    while ((open.at(-1) as { depth: number }).depth >= depth) open.pop()
    const line = { text: trimmed, inner: [] }
    open.at(-1)?.line.inner.push(line)
    open.push({ depth, line })
  }
  return top.inner
}

/** Parts of a text between commas outside brackets and quotes. */
function split(text: string): string[] {
  const parts = text.match(/(?:"[^"]*"|\([^)]*\)|\[[^\]]*\](?!\w)|\{[^}]*\}|[^,])+/g) ?? []
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

type Names = ReadonlyMap<string, string>

/** Puts values in the place of `$names`, the longest name first. */
function fill(text: string, names: Names): string {
  return text.replace(/\$\w+/g, (word) => {
    for (let length = word.length; length > 1; length -= 1) {
      const value = names.get(word.slice(0, length))
      if (value !== undefined) return value + word.slice(length)
    }
    throw new Error(`${text}: ${word} has no value`)
  })
}

const outPattern =
  /^(?<sign>[*@])(?<type>\w[\w ]*(?: \*+)?)(?:\[(?<count>#?\w+)\])?(?:=(?<initial>\d+))?(?:>(?<save>\w+))? ?(?<follow>->texts?(?:\((?<table>\d)\))?)?(?:~(?<compare>\w+(?:\(\w+\))?))?(?:\{(?<fields>.*)\})?$/

class List {
  readonly groups: Group[] = []
  readonly #spec: Spec
  readonly #macros = new Map<string, { readonly parameters: readonly string[]; readonly inner: readonly Line[] }>()
  readonly #comparisons = new Map<string, Comparison>()
  #defined: Names = new Map()

  constructor(spec: Spec) {
    this.#spec = spec
  }

  run(lines: readonly Line[], names: Names): void {
    for (const line of lines) {
      const [word = '', rest = ''] = this.#match(/^(\S+)\s*(.*)$/, line.text)
      const filled = () => fill(rest, new Map([...this.#defined, ...names]))
      if (word === 'define') this.#define(rest)
      else if (word === 'compare') this.#compare(rest)
      else if (word === 'macro') {
        const [name = '', parameters = ''] = this.#match(/^(\w+)\s*(.*)$/, rest)
        this.#macros.set(name, { parameters: split(parameters), inner: line.inner })
      } else if (word.startsWith('+')) this.#expand(word.slice(1), split(filled()))
      else if (['for', 'each', 'values'].includes(word)) this.#repeat(word, rest, line.inner, names)
      else if (word === 'case') this.#choose(filled(), line.inner, names)
      else if (word === 'group') this.#begin(rest)
      else if (word === 'let') this.#add(this.#memory(filled()))
      else if (word === 'do') this.#add(this.#call(filled(), true))
      else this.#add(this.#call(fill(line.text, new Map([...this.#defined, ...names])), false))
    }
  }

  #define(text: string): void {
    const [name = '', value = ''] = this.#match(/^(\$\w+) (.*)$/, text)
    this.#defined = new Map([...this.#defined, [name, value]])
  }

  #compare(text: string): void {
    const [name = '', how = '', reason = ''] = this.#match(/^(\w+) (presence|similar|ignored) (.*)$/, text)
    this.#comparisons.set(name, { how: how as 'presence', reason })
  }

  #expand(name: string, values: readonly string[]): void {
    const { parameters, inner } = this.#known(this.#macros.get(name), `there is no macro ${name}`)
    if (parameters.length !== values.length) throw new Error(`${name} takes ${parameters.length} values`)
    this.run(inner, new Map(parameters.map((one, at) => [one, values[at] as string])))
  }

  #repeat(word: string, rest: string, inner: readonly Line[], names: Names): void {
    const [name = '', of = '', except] = this.#match(/^(\$\w+) in (.*?)(?: except \/(.*)\/)?$/, rest)
    const source = fill(of, new Map([...this.#defined, ...names]))
    const all =
      word === 'for' ? source.split(' ') : word === 'each' ? this.#spec.members(source) : this.#spec.values(source)
    for (const one of all) {
      if (except !== undefined && new RegExp(except).test(String(one))) continue
      this.run(inner, new Map([...names, [name, String(one)]]))
    }
  }

  /** The first line whose pattern fits. */
  #choose(text: string, lines: readonly Line[], names: Names): void {
    const choices = lines.map((line) => this.#match(/^\/(\S*)\/ (.*)$/, line.text))
    const [, step = ''] = this.#known(
      choices.find(([pattern = '']) => new RegExp(pattern).test(text)),
      `no case for ${text}`,
    )
    this.run([{ text: step, inner: [] }], names)
  }

  #begin(text: string): void {
    const [name = '', devices = '1', optional] = this.#match(/^(\S+)(?: devices=(\d))?(?: optional="(.*)")?$/, text)
    const reason = optional === undefined ? {} : { optional }
    this.groups.push({ name, library: this.#spec.library, devices: Number(devices), ...reason, steps: [] })
  }

  #add(step: Step): void {
    this.#known(this.groups.at(-1), 'a step stands before the first group').steps.push(step)
  }

  #memory(text: string): Step {
    const [name = '', type = '', count = '1', all = ''] = this.#match(/^(\w+) (\w+)(?:\[(\d+)\])?(?: (.*))?$/, text)
    const fields = split(all).map((field): [string, Value] => {
      const [path = '', value = ''] = this.#match(/^([\w.]+)=(.*)$/, field)
      return [path, this.#value(value)]
    })
    const needs = fields.flatMap(([, value]) => neededBy(value))
    return { kind: 'memory', name, type, count: Number(count), fields, needs }
  }

  /** Functions that the spec does not have stop the list: it is kept with the spec. */
  #call(text: string, setup: boolean): Step {
    const [name = '', inside = ''] = this.#match(/^(\w+)\((.*)\)$/, text)
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

  /** All members of an enumeration, or some. */
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
    const [sign, name = '', plus = '0'] = this.#match(/^(&?)(\w+)(?:\+(\d+))?$/, text)
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
    const fields = split(text).map((field) => this.#match(/^([\w:]+)~(.*)$/, field))
    return Object.fromEntries(fields.map(([name = '', how = '']) => [name, this.#comparison(how)]))
  }

  #comparison(text: string): Comparison {
    const base = /^from\((\w+)\)$/.exec(text)?.[1]
    if (base === undefined) return this.#known(this.#comparisons.get(text), `there is no comparison ${text}`)
    return { how: 'offset', base, reason: 'an address of this process, compared as its distance from the allocation' }
  }

  #match(pattern: RegExp, text: string): (string | undefined)[] {
    return this.#known(pattern.exec(text), `"${text}" cannot be read`).slice(1)
  }

  #known<T>(value: T | null | undefined, problem: string): T {
    if (value === undefined || value === null) throw new Error(`the questions for ${this.#spec.library}: ${problem}`)
    return value
  }
}

function neededBy(value: Argument): string[] {
  return value.kind === 'use' || value.kind === 'address' ? [value.name] : []
}
