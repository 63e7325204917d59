import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const folder = fileURLToPath(new URL('..', import.meta.url))

test('every name in DESIGN.md exists in the sources', () => {
  const files = readdirSync(join(folder, 'native'), { recursive: true, encoding: 'utf8' })
  const sources = files.filter((file) => /\.(cc|h|map)$|Makefile$/.test(file) && !file.startsWith('test/'))
  const text = sources.map((file) => readFileSync(join(folder, 'native', file), 'utf8')).join('\n')
  const words = new Set(text.match(/\w+/g))
  // Files of other places, or patterns of names.
  const elsewhere = /^(tooling|src)\/|[*…=]|NAME|^pnpm |^libraries$/
  const isKnown = (name: string): boolean =>
    elsewhere.test(name) ||
    sources.some((file) => file === name || file.startsWith(name) || file.endsWith(`/${name}`)) ||
    files.includes(name) ||
    (name.match(/\w+/g) ?? []).every((word) => words.has(word) || /^(so|1|2|3|13|h)$/.test(word))
  const named = [...readFileSync(join(folder, 'DESIGN.md'), 'utf8').matchAll(/`([^`]+)`/g)].map(
    ([, name]) => name as string,
  )
  expect(named.length).toBeGreaterThan(80)
  expect(named.filter((name) => !isKnown(name))).toEqual([])
})
