import type { Value } from './answer.js'

/** The result of comparing the answers to a case, value by value. */
export interface Comparison {
  /** The number of equal values. */
  equal: number
  /** The number of refusals by both, with the same status. */
  refused: number
  /** The number of refusals by the driver that a check of the packages made before the driver was called. */
  refusedHere: number
  /** The places where only a check of the packages refuses, and the driver's answer. */
  readonly stricter: string[]
  /** The places that differ, and both answers. */
  readonly different: string[]
}

export function compare(ours: Value, theirs: Value): Comparison {
  const result: Comparison = { equal: 0, refused: 0, refusedHere: 0, stricter: [], different: [] }
  walk(ours, theirs, '', result)
  return result
}

type Fields = { readonly [name: string]: Value }

const isFields = (value: Value): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)
const show = (value: Value | undefined): string => {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length <= 120 ? text : `${text.slice(0, 120)}…`
}

function walk(ours: Value | undefined, theirs: Value | undefined, where: string, result: Comparison): void {
  const place = where === '' ? 'the case' : where
  if (ours !== undefined && isFields(ours) && 'refusedHere' in ours) {
    if (theirs !== undefined && isFields(theirs) && 'refused' in theirs) result.refusedHere += 1
    else result.stricter.push(`${place}: ${show(ours['refusedHere'])}; the driver gives ${show(theirs)}`)
  } else if (ours === undefined || theirs === undefined) {
    result.different.push(`${place}: ${show(ours)} in Shoal, ${show(theirs)} in C++`)
  } else if (Array.isArray(ours) && Array.isArray(theirs)) {
    for (let at = 0; at < Math.max(ours.length, theirs.length); at += 1)
      walk(ours[at] as Value, theirs[at] as Value, `${where}[${at}]`, result)
  } else if (isFields(ours) && isFields(theirs)) {
    for (const name of new Set([...Object.keys(ours), ...Object.keys(theirs)]))
      walk(ours[name], theirs[name], where === '' ? name : `${where}.${name}`, result)
    // The loop above counted the refusal as a value, by its name.
    if ('refused' in ours && ours['refused'] === theirs['refused']) {
      result.equal -= 1
      result.refused += 1
    }
  } else if (typeof ours === 'string' && typeof theirs === 'string' && ours.length > 32) {
    compareBytes(ours, theirs, place, result)
  } else if (ours === theirs) {
    result.equal += 1
  } else {
    result.different.push(`${place}: ${show(ours)} in Shoal, ${show(theirs)} in C++`)
  }
}

const digitsOfWord = 8

/** Compares bytes as hexadecimal digits. Every four bytes count as one value. */
function compareBytes(ours: string, theirs: string, place: string, result: Comparison): void {
  const words = Math.ceil(Math.max(ours.length, theirs.length) / digitsOfWord)
  let first: string | undefined
  let count = 0
  for (let word = 0; word < words; word += 1) {
    const [one, other] = [ours, theirs].map((text) => text.slice(word * digitsOfWord, (word + 1) * digitsOfWord))
    if (one === other) {
      result.equal += 1
      continue
    }
    count += 1
    first ??= `${place}, bytes from ${word * 4}: ${one} in Shoal, ${other} in C++`
  }
  if (first !== undefined) result.different.push(count === 1 ? first : `${first}, and ${count - 1} more words`)
}
