import { isForged, isProxy } from './anyValue.js'

/** A value in a few words, for the message of an argument error; also one that cannot be made text of. */
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

/** On one line: a message is not to be torn apart by the value that it is about. */
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
    // A proxy or a getter of the program's threw: there is nothing to say of it.
    return 'an object'
  }
}
