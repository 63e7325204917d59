import { expect, test } from 'vitest'
import { patternProblem, sourceProblems } from '../patterns.mjs'

test.each([
  ['^\\d+$', undefined],
  ['\\[([^[\\]]*)\\]', undefined],
  ['(?:\\s|/\\*[\\s\\S]*?\\*/)*include', 'exponential'],
  ['\\[([^\\]]*)\\]', '2nd degree polynomial'],
  ['\\s+$', '2nd degree polynomial'],
])('the check of regular expressions judges %s', (pattern, expected) => {
  if (expected === undefined) expect(patternProblem(pattern, 'g')).toBeUndefined()
  else expect(patternProblem(pattern, 'g')).toContain(expected)
})

test('the check of regular expressions reports the line, and refuses patterns made at run time', () => {
  const text =
    'export const a = /x/\nexport const b = new RegExp(name)\nexport const c = RegExp(name)\nexport const d = /a*b*a*$/\n'
  expect(sourceProblems('a.ts', text)).toEqual([
    expect.stringMatching(/^a\.ts:2: a pattern made at run time/),
    expect.stringMatching(/^a\.ts:3: a pattern made at run time/),
    expect.stringMatching(/^a\.ts:4: \/a\*b\*a\*\$\/ takes .* polynomial time/),
  ])
})
