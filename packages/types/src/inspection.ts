import { describeValue } from './describeValue.js'

/** What `util.inspect` and `console.log` print of a public object: its class and what it is, in one line. */
export const inspectKey: unique symbol = Symbol.for('nodejs.util.inspect.custom')

/** `Name { a: 1, b: 'x' }`; facts that are undefined are left out. */
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
