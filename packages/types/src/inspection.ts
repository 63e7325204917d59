import { describeValue } from './describeValue.js'

/** Key of the method with which `util.inspect` and `console.log` print an object. */
export const inspectKey: unique symbol = Symbol.for('nodejs.util.inspect.custom')

/** Formats `Name { a: 1, b: 'x' }`; omits undefined facts. */
export function inspectLine(name: string, facts: { readonly [fact: string]: unknown }): string {
  const shown = Object.entries(facts)
    .filter(([, value]) => value !== undefined)
    .map(
      ([fact, value]) =>
        `${fact}: ${fact === 'address' || fact === 'handle' ? hexadecimal(value) : describeValue(value)}`,
    )
  return shown.length === 0 ? `${name} {}` : `${name} { ${shown.join(', ')} }`
}

function hexadecimal(value: unknown): string {
  return typeof value === 'bigint' ? `0x${value.toString(16)}` : describeValue(value)
}
