import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

// Where a package calls a function without the generated checks, it says by hand what the spec says: since when the
// function is there, and how many words its arguments take. A wrong number calls another version, or passes what nobody
// has put there.

const packages = fileURLToPath(new URL('../../../packages/', import.meta.url))

interface Call {
  readonly at: string
  readonly name: string
  readonly since: string
  readonly words: string
}

function callsIn(file: string, pattern: RegExp): Call[] {
  const text = readFileSync(join(packages, file), 'utf8')
  const numbers = new Map([...text.matchAll(/const (\w+) = ([\d_]+)$/gm)].map(([, name, value]) => [name, value]))
  return [...text.matchAll(pattern)].map(({ 1: name = '', 2: since = '', 3: words = '' }) => ({
    at: `${file}: ${name}`,
    name,
    since: (numbers.get(since) ?? since).replaceAll('_', ''),
    words,
  }))
}

const files = readdirSync(packages, { recursive: true, encoding: 'utf8' }).filter((file) =>
  /^[^/]+\/src\/.*\.ts$/.test(file),
)
const generated = new Set(
  files
    .filter((file) => file.endsWith('.gen.ts'))
    .flatMap((file) => callsIn(file, /\.bind\('(\w+)', (\d+), (\d+)/g))
    .map(({ name, since, words }) => `${name} ${since} ${words}`),
)
const byHand = files
  .filter((file) => !file.endsWith('.gen.ts'))
  .flatMap((file) => callsIn(file, /(?:\.bind|\bdirect)\('?(\w+)'?, (\w+), (\d+)\)/g))
  .flatMap((call) => (call.name === 'api' ? apisOf(call) : [call]))

/** Both functions that `fill` names by a variable. */
function apisOf(call: Call): Call[] {
  return ['cuMemsetD16Async', 'cuMemsetD32Async'].map((name) => ({ ...call, name, at: `${call.at} (${name})` }))
}

test('there are such calls', () => {
  expect(generated.size).toBeGreaterThan(1000)
  expect(byHand.length).toBeGreaterThanOrEqual(20)
})

test.each(byHand)('$at is bound as its generated function is', ({ name, since, words }) => {
  expect(generated).toContain(`${name} ${since} ${words}`)
})
