// Compares the answers of the two sides, question by question.
import type { Answer, Answers, Output } from './answers.js'
import type { Spec } from './spec.js'
import { type Comparison, describeStep, type Group, type Out, outsOf } from './steps.js'

export type Outcome = 'equal' | 'byNature' | 'different' | 'absent' | 'unasked'

export interface Finding {
  readonly step: number
  readonly question: string
  readonly outcome: Outcome
  /** what differs, or what was compared instead of the bytes and why */
  readonly details: readonly string[]
}

export type Counts = Record<Outcome, number>
export const noCounts: Counts = { equal: 0, byNature: 0, different: 0, absent: 0, unasked: 0 }

export interface GroupReport {
  readonly findings: readonly Finding[]
  readonly counts: Counts
}

/**
 * Compares a group. `equal`: same status and same bytes. `byNature`: the same, except values that belong to the
 * process, which were compared as the list says. `absent`: neither side's library has the function. `unasked`: on both
 * sides, something that the question needs was not available.
 */
export function compareGroup(spec: Spec, group: Group, ours: Answers, theirs: Answers): GroupReport {
  const findings: Finding[] = []
  const comparer = new Comparer(spec, keptValues(group, ours), keptValues(group, theirs))
  for (const [number, step] of group.steps.entries()) {
    if (step.kind === 'memory') continue
    const one = ours.answers.get(number)
    const other = theirs.answers.get(number)
    findings.push({ step: number, question: describeStep(step), ...comparer.compare(outsOf(step), one, other) })
  }
  const counts = { ...noCounts }
  for (const { outcome } of findings) counts[outcome] += 1
  return { findings, counts }
}

/** Returns the numbers that a side kept, to compare distances. */
function keptValues(group: Group, { answers }: Answers): ReadonlyMap<string, bigint> {
  const kept = new Map<string, bigint>()
  for (const [number, step] of group.steps.entries()) {
    const answer = answers.get(number)
    for (const [index, { save }] of outsOf(step).entries()) {
      const bytes = answer?.outs?.[index]
      if (save !== undefined && answer?.status === 0 && typeof bytes === 'string') kept.set(save, numberOf(bytes))
    }
  }
  return kept
}

class Comparer {
  readonly #spec: Spec
  readonly #ours: ReadonlyMap<string, bigint>
  readonly #theirs: ReadonlyMap<string, bigint>

  constructor(spec: Spec, ours: ReadonlyMap<string, bigint>, theirs: ReadonlyMap<string, bigint>) {
    this.#spec = spec
    this.#ours = ours
    this.#theirs = theirs
  }

  compare(
    outs: readonly Out[],
    one: Answer | undefined,
    other: Answer | undefined,
  ): { outcome: Outcome; details: string[] } {
    if (one === undefined || other === undefined) {
      const missing = one === undefined && other === undefined ? 'neither side' : one === undefined ? 'Shoal' : 'C++'
      return different(missing === 'neither side' ? 'neither side answered' : `${missing} did not answer`)
    }
    if (one.error !== undefined) return different(`Shoal refused the call: ${one.error}`)
    for (const [what, outcome] of [
      ['missing', 'absent'],
      ['unasked', 'unasked'],
    ] as const) {
      if (one[what] && other[what]) return { outcome, details: [] }
      if (one[what] || other[what]) return different(`${what} only ${one[what] ? 'in Shoal' : 'in C++'}`)
    }
    const wrong: string[] = []
    const natural: string[] = []
    for (const what of ['status', 'text', 'result'] as const) {
      if (one[what] !== other[what])
        wrong.push(`${what}: ${show(one[what], what)} in Shoal, ${show(other[what], what)} in C++`)
    }
    if (one.overrun || other.overrun) wrong.push('the library wrote beyond an out-parameter')
    const succeeded = one.status === 0 || one.status === null
    for (const [index, out] of outs.entries()) {
      const found = this.#compareOut(out, one.outs?.[index] ?? null, other.outs?.[index] ?? null, succeeded)
      wrong.push(...found.wrong.map((text) => `out ${index} (${out.type}): ${text}`))
      natural.push(...found.natural)
    }
    if (wrong.length > 0) return { outcome: 'different', details: wrong }
    return natural.length > 0 ? { outcome: 'byNature', details: natural } : { outcome: 'equal', details: [] }
  }

  #compareOut(out: Out, one: Output, other: Output, succeeded: boolean): { wrong: string[]; natural: string[] } {
    if (out.follow !== undefined) {
      const equal = JSON.stringify(one) === JSON.stringify(other)
      return { wrong: equal ? [] : [`${showTexts(one)} in Shoal, ${showTexts(other)} in C++`], natural: [] }
    }
    if (typeof one !== 'string' || typeof other !== 'string') return { wrong: ['no bytes'], natural: [] }
    if (one.length !== other.length)
      return { wrong: [`${one.length / 2} bytes in Shoal, ${other.length / 2} in C++`], natural: [] }
    if (!succeeded || (out.compare === undefined && out.fields === undefined)) return plain(one, other)
    if (out.compare !== undefined) return this.#special(out.compare, one, other)
    let restOne = one
    let restOther = other
    const wrong: string[] = []
    const natural: string[] = []
    for (const [field, comparison] of Object.entries(out.fields ?? {})) {
      const { offset, bytes } = this.#place(out.type, field)
      const cut = (text: string) => text.slice(offset * 2, (offset + bytes) * 2)
      const found = this.#special(comparison, cut(one), cut(other))
      wrong.push(...found.wrong.map((text) => `${field}: ${text}`))
      natural.push(...found.natural.map((text) => `${field}: ${text}`))
      const blank = (text: string) =>
        `${text.slice(0, offset * 2)}${'.'.repeat(bytes * 2)}${text.slice((offset + bytes) * 2)}`
      restOne = blank(restOne)
      restOther = blank(restOther)
    }
    return { wrong: [...wrong, ...plain(restOne, restOther).wrong], natural }
  }

  /** Finds a field of a struct by name, or by `offset:length` in bytes. */
  #place(type: string, field: string): { offset: number; bytes: number } {
    const [offset, bytes] = field.split(':')
    if (bytes !== undefined) return { offset: Number(offset), bytes: Number(bytes) }
    return this.#spec.field(type, field)
  }

  #special(comparison: Comparison, one: string, other: string): { wrong: string[]; natural: string[] } {
    const met = this.#holds(comparison, one, other)
    if (met !== undefined) return { wrong: [met], natural: [] }
    return { wrong: [], natural: [`compared by ${comparison.how}: ${comparison.reason}`] }
  }

  #holds(comparison: Comparison, one: string, other: string): string | undefined {
    const [a, b] = [numberOf(one), numberOf(other)]
    switch (comparison.how) {
      case 'ignored':
        return undefined
      case 'presence': {
        const parts = (text: string) => (text.match(/.{1,16}/g) ?? []).map((part) => (/^0*$/.test(part) ? '0' : 'x'))
        const same = parts(one).join() === parts(other).join()
        return same ? undefined : `there or not: ${one} in Shoal, ${other} in C++`
      }
      case 'similar': {
        const similar = a === b || (a > 0n && b > 0n && a <= 2n * b && b <= 2n * a)
        return similar ? undefined : `not alike: ${a} in Shoal, ${b} in C++`
      }
      case 'offset': {
        if (a === 0n && b === 0n) return undefined
        const [baseOne, baseOther] = [this.#ours.get(comparison.base), this.#theirs.get(comparison.base)]
        if (baseOne === undefined || baseOther === undefined) return `${comparison.base} was not kept`
        // Memory that no call wrote holds no address.
        if (one === other) return undefined
        const same = a !== 0n && b !== 0n && a - baseOne === b - baseOther
        return same ? undefined : `${show(a - baseOne)} from ${comparison.base} in Shoal, ${show(b - baseOther)} in C++`
      }
    }
  }
}

function plain(one: string, other: string): { wrong: string[]; natural: string[] } {
  if (one === other) return { wrong: [], natural: [] }
  let at = 0
  while (one.slice(at * 2, at * 2 + 2) === other.slice(at * 2, at * 2 + 2)) at += 1
  const part = (text: string) => text.slice(at * 2, at * 2 + 32)
  return { wrong: [`from byte ${at}: ${part(one)} in Shoal, ${part(other)} in C++`], natural: [] }
}

function different(detail: string): { outcome: 'different'; details: string[] } {
  return { outcome: 'different', details: [detail] }
}

/** Converts little-endian bytes to a number. Only the first eight count. */
function numberOf(hex: string): bigint {
  const bytes = (hex.slice(0, 16).match(/../g) ?? []).reverse().join('')
  return bytes === '' ? 0n : BigInt(`0x${bytes}`)
}

function show(value: unknown, what?: string): string {
  if (what === 'text' && typeof value === 'string') return JSON.stringify(Buffer.from(value, 'hex').toString('utf8'))
  return typeof value === 'bigint' ? `${value} bytes` : String(value)
}

function showTexts(value: Output): string {
  if (value === null) return 'no text'
  return typeof value === 'string' ? show(value, 'text') : `[${value.map(showTexts).join(', ')}]`
}
