import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from '../workspace.mjs'

const folder = join(root, 'docs/contributing')
const pages = readdirSync(folder)
const steps = (text: string): string[] => text.split('\n').filter((line) => /^\| \d+ \|/.test(line))

it('CONTRIBUTING has at most 700 words and links to every page', () => {
  const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
  expect(text.trim().split(/\s+/).length).toBeLessThanOrEqual(700)
  for (const page of pages) expect(text).toContain(`docs/contributing/${page}`)
})

it.each(pages)('%s names existing files', (page) => {
  const text = readFileSync(join(folder, page), 'utf8')
  expect(steps(text).length).toBeGreaterThan(2)
  const named = [...text.matchAll(/`((?:packages|tooling|docs|python)\/[\w./-]+)`/g)].map(([, path = '']) => path)
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
})

it.each([
  ['function', 8],
  ['collective', 12],
  ['instruction', 6],
  ['library', 15],
])('adding a %s takes at most %i places', (task, most) => {
  expect(steps(readFileSync(join(folder, `${task}.md`), 'utf8')).length).toBeLessThanOrEqual(most)
})
