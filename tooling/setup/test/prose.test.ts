import { expect, test } from 'vitest'
import { commitProblems, problemsOf } from '../prose.mjs'

const plain = 'The stream frees the memory when its kernel has completed. '

test.each([
  ['a clause as a subject', 'What waits for the device is freed later.'],
  ['a verb of speech', 'The context is told that the memory is free.'],
  ['a pronoun for an actor', 'Whoever takes a lease returns it.'],
  ['a number without a noun', 'The graph has nodes of which some are empty.'],
])('the check of prose refuses %s above its rate, with the line', (_, vague) => {
  const problems = problemsOf('pages', [['a.md', 7, `${plain}\n${vague}`]])
  expect(problems[0]).toMatch(/^a\.md:8: "/)
  expect(problems.at(-1)).toMatch(/^pages: \d in \d+ words; at most 2 in 1,000 are allowed$/)
  expect(problemsOf('pages', [['a.md', 7, plain.repeat(200) + vague]])).toEqual([])
})

test('the check of prose refuses a repeated small word at any rate', () => {
  const text = `${plain.repeat(500)}\nIt frees the the memory.`
  expect(problemsOf('pages', [['a.md', 1, text]])).toEqual(['a.md:2: "the" is repeated'])
  expect(problemsOf('pages', [['a.md', 1, '@param memory memory of a device']])).toEqual([])
})

const body = '\n\nBecause users expect it.\n'

test.each([
  [`Keep buffers alive while a graph can launch${body}`, []],
  [`Pass the option through${body}`, []],
  [`Embed the mark${body}`, []],
  [`Added buffers${body}`, [/imperative/]],
  [`keep buffers alive${body}`, [/imperative/]],
  [`Keeps buffers alive${body}`, [/imperative/]],
  [`Keep ${'buffers '.repeat(10)}alive${body}`, [/has a subject of \d+ characters; 72 are allowed/]],
  [`Keep buffers alive.${body}`, [/full stop/]],
  ['Keep buffers alive\n', [/no body/]],
  ['Keep buffers alive\nbecause users expect it\n', [/no body/]],
])('the check of commit messages judges %j', (message, problems) => {
  const found = commitProblems(message)
  expect(found.length).toBe(problems.length)
  for (const [index, pattern] of problems.entries()) expect(found[index]).toMatch(pattern)
})
