import type { ConstantSpec } from '../spec/types.js'
import { evaluate, type Translation } from './clang.js'
import { parseType } from './ctypes.js'
import type { Declarations } from './declarations.js'
import { handleName, isOpaque } from './lower.js'

const cast = /^\(+\s*([A-Za-z_][\w ]*\**)\s*\)/
const plain = /^[-+~\s()\w<>|&*/]+$/
const floating = /^\(?\s*(-?\d+\.\d*)f?\s*\)?$/

/** Object-like macros with the value of a number, a handle or an enumerator. Other macros are not constants. */
export function readConstants(
  unit: Translation,
  declarations: Declarations,
  macros: ReadonlyMap<string, string>,
  wanted: RegExp,
): ConstantSpec[] {
  const enumerators = new Set(declarations.enums.flatMap((entry) => entry.members.map(([name]) => name)))
  const constants: ConstantSpec[] = []
  const integers: { name: string; type?: string }[] = []
  for (const [name, body] of [...macros].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!wanted.test(name) || body.trim() === '') continue
    const float = floating.exec(body)
    if (float) constants.push({ name, value: String(Number(float[1])), kind: 'float' })
    else if (isConstant(body, macros, enumerators, declarations)) integers.push(withType(name, body, declarations))
  }
  const values = evaluate(
    unit,
    integers.map(({ name }) => name),
  )
  // clang prints signed values. An unsigned one of 64 bits can be beyond them.
  const negative = integers.filter(({ type }, index) => type === undefined && (values[index] as bigint) < 0n)
  const signs = evaluate(
    unit,
    negative.map(({ name }) => `(${name}) < 0`),
  )
  const unsigned = new Set(negative.filter((_, index) => signs[index] === 0n))
  integers.forEach((integer, index) => {
    const { name, type } = integer
    const value = (values[index] as bigint) + (unsigned.has(integer) ? 2n ** 64n : 0n)
    const isBig =
      type !== undefined || value > BigInt(Number.MAX_SAFE_INTEGER) || value < BigInt(Number.MIN_SAFE_INTEGER)
    constants.push({ name, value: String(value), kind: isBig ? 'bigint' : 'number', ...(type ? { type } : {}) })
  })
  return constants.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function withType(name: string, body: string, declarations: Declarations): { name: string; type?: string } {
  const match = cast.exec(body.trim())
  const typeName = match?.[1]?.trim()
  if (!typeName) return { name }
  if (/\*$/.test(typeName)) return { name, type: 'pointer' }
  if (!declarations.typedefs.has(typeName)) return { name }
  const { target, chain } = declarations.resolve(parseType(typeName))
  return target.kind === 'pointer' && isOpaque(declarations, target.to) ? { name, type: handleName(chain) } : { name }
}

/** True if every word of a macro's body is a number, a type in a cast, an enumerator, or such a macro. */
function isConstant(
  body: string,
  macros: ReadonlyMap<string, string>,
  enumerators: ReadonlySet<string>,
  declarations: Declarations,
  depth = 0,
): boolean {
  if (depth > 8 || !plain.test(body)) return false
  for (const word of body.match(/[A-Za-z_]\w*/g) ?? []) {
    if (new RegExp(`\\b\\d\\w*${word}\\b`).test(body) || /^(x[0-9a-fA-F]+|[uUlL]+)$/.test(word)) continue
    if (enumerators.has(word) || word === 'INT_MIN' || /^(int|unsigned|long|void|char|short)$/.test(word)) continue
    if (declarations.typedefs.has(word) && body.includes('(')) continue
    const nested = macros.get(word)
    if (nested === undefined || !isConstant(nested, macros, enumerators, declarations, depth + 1)) return false
  }
  return /\d/.test(body) || /[A-Za-z_]/.test(body)
}
