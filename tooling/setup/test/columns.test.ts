import { expect, test } from 'vitest'
import { fitted } from '../columns.mjs'

const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index}`).join(' ')

test.each([
  ['a line', `// ${words(30)}\nexport const a = 1\n`],
  ['a short documentation', `/** ${words(30)} */\nexport const a = 1\n`],
  ['a list', `/**\n * One.\n *\n * - ${words(30)}\n * - two\n *\n * @param a ${words(20)}\n */\nexport const a = 1\n`],
])('the check of columns fills the lines of %s without losing a word', (_, text) => {
  const { text: better, left } = fitted('a.ts', text)
  expect(left).toEqual([])
  expect(better.split('\n').every((line: string) => line.length <= 120)).toBe(true)
  const bare = (all: string): string => all.replaceAll(/\/\*\*|\*\/|[\s/*]+/g, ' ').trim()
  expect(bare(better)).toBe(bare(text))
  expect(fitted('a.ts', better)).toEqual({ text: better, left: [] })
})

test('the check of columns keeps examples, literals, directives and short comments, and reports long lines', () => {
  const example = `/**\n * Adds.\n *\n * @example\n * ${words(30)}\n */\n`
  const fenced = `/**\n * @example\n * \`\`\`ts\n * ${words(30)}\n * b\n * \`\`\`\n * c\n */\nexport const b = 1\n`
  expect(fitted('a.ts', fenced).text).toBe(fenced)
  const text = `${example}export const a = \`\n// ${words(30)}\n\`\n// biome-ignore ${words(30)}\n// a\n// b\n`
  expect(fitted('a.ts', text)).toEqual({ text, left: [5, 10] })
  expect(fitted('a.ts', `export const a = 1 // ${words(30)}\n`).left).toEqual([1])
})

test('the interpreter line stays apart from the comment below it', () => {
  const text = `#!/usr/bin/env node\n// ${words(30)}\nexport const a = 1\n`
  expect(fitted('a.mjs', text).text.split('\n')[0]).toBe('#!/usr/bin/env node')
})
