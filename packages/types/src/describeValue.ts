import { isForged, isProxy } from './anyValue.js'

/** Describes any value in a few words, for argument errors. */
export function describeValue(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `'${escaped(value)}'`
    case 'bigint':
      return `${shortened(String(value))}n`
    case 'symbol':
      return escaped(String(value))
    case 'function':
      return 'a function'
    case 'object':
      return value === null ? 'null' : describeObject(value)
    default:
      return String(value)
  }
}

function shortened(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

/** Escapes line breaks, so that the message stays on one line. */
function escaped(text: string): string {
  return shortened(text).replaceAll('\n', '\\n').replaceAll('\r', '\\r')
}

function describeObject(value: object): string {
  try {
    const prototype = Object.getPrototypeOf(value) as { constructor?: { name?: unknown } } | null
    const name = prototype?.constructor?.name
    if (typeof name !== 'string' || name === 'Object') return 'a plain object'
    if (isProxy(value)) return `a proxy around an object of class ${name}`
    if (isForged(value)) return `an object with only the prototype of ${name}`
    return name === '' ? 'an object of a class without a name' : `an object of class ${name}`
  } catch {
    // A proxy or a getter of the program threw, so nothing more is known.
    return 'an object'
  }
}
