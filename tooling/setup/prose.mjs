#!/usr/bin/env node
// Checks the prose of the project with write-good and the rules of CONTRIBUTING.md: pages, comments, error messages and
// test titles. A repeated word is an error. A vague turn of phrase is one if its area has more than two per 1,000
// words. Checks the messages of the commits since the one that added this file, too.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseSync, Visitor } from 'rolldown/utils'
import writeGood from 'write-good'
import { capture, root, runMain } from './workspace.mjs'

/** Vague turns of phrase per 1,000 words that an area may have. A hit can be right. */
const most = 2

/** Turns of phrase that hide who acts, each with what to write. */
const vague = [
  [
    /\b(?:whoever|nobody|told|tells|learns? of|given up|has it that)\b/gi,
    'says who acts in other words: name the actor',
  ],
  [
    /\b(?:is none|are none|is there|are there|stands? in|stands? beside|be had|beside)\b/gi,
    'is vague: say what exists',
  ],
  [
    /\b(?:by then|from then on|all the same|goes on|in turns?|is left to|leaves? out)\b/gi,
    'is vague: say when, or what',
  ],
  [
    /\b(?:of which|that which|but for|of one's own|of (?:its|their) own)\b/gi,
    'needs a second reading: use a short clause',
  ],
  [/\b(?:what (?:is|was|are|has|it|they)|where (?:there|it) is (?:none|one))\b/gi, 'stands for a noun: write the noun'],
  [/\b(?:comes? (?:of|to)|says? so)\b/gi, 'is vague: name the cause or the result'],
  [/(?<=^|[.!?] )(?:What|Whoever) [a-z]+/gm, 'opens a sentence with a clause: open it with the subject'],
]
const checks = Object.fromEntries(
  vague.map(([pattern, explanation], index) => [
    `vague${index}`,
    {
      fn: (text) => [...text.matchAll(pattern)].map((hit) => ({ index: hit.index, offset: hit[0].length })),
      explanation,
    },
  ]),
)
const onlyRepeated = { illusion: true, weasel: false, so: false, thereIs: false, passive: false, adverb: false }
const repeatedWords = { ...onlyRepeated, tooWordy: false, cliches: false }

/** Returns a text with `X` in the place of code, so that the words around it keep their distance and their lines. */
const withoutCode = (text) =>
  text.replaceAll(/```[\s\S]*?```|@example[^@]*|`[^`\n]*`|<!--[\s\S]*?-->/g, (code) => code.replaceAll(/[^\n]+/g, 'X'))
const pageText = (_, text) => [[1, withoutCode(text)]]
const lineAt = (text, index) => text.slice(0, index).split('\n').length
const cxxComments = (_, text) =>
  [...text.matchAll(/\/\*[\s\S]*?\*\/|(?<![:"'`])\/\/.*/g)].map(({ 0: comment, index }) => [
    lineAt(text, index),
    comment,
  ])
const comments = (file, text) =>
  parseSync(file, text).comments.map(({ start, value }) => [lineAt(text, start), withoutCode(value)])

/** Returns the literal texts that `visitor` picks from the calls in a source. */
function literals(file, text, isWanted) {
  const found = []
  const look = (node) => {
    if (!isWanted(node.callee)) return
    const [first] = node.arguments
    const quasis = first?.type === 'TemplateLiteral' ? first.quasis.map(({ value }) => value.cooked) : []
    const value = typeof first?.value === 'string' ? first.value : quasis.join(' X ')
    if (value !== '') found.push([lineAt(text, node.start), value])
  }
  new Visitor({ NewExpression: look, CallExpression: look }).visit(parseSync(file, text).program)
  return found
}

const isError = (callee) => callee.type === 'Identifier' && callee.name.endsWith('Error')
const isTest = (callee) =>
  ['test', 'it', 'describe'].includes(callee.name ?? '') ||
  (callee.type === 'MemberExpression' && isTest(callee.object)) ||
  (callee.type === 'CallExpression' && isTest(callee.callee))
const notGenerated = (pattern) => (file) => pattern.test(file) && !/(^|\/)(?:gen|generated)\/|\.gen\./.test(file)

/** The areas: name, files, and how to read a file as lines with their numbers. */
const areas = [
  ['pages', notGenerated(/^(?:README|CONTRIBUTING|SECURITY)\.md$|^docs\/(?!hardware\/results).*\.md$/), pageText],
  ['pages of packages', notGenerated(/^(?:packages|tooling)\/.*\.md$|^\.changeset\/.*\.md$/), pageText],
  ['comments of packages', notGenerated(/^packages\/[^/]+\/(?:src|test)\/.*\.m?ts$/), comments],
  ['comments of tooling', notGenerated(/^(?:tooling|docs\/examples)\/.*\.m?[jt]s$/), comments],
  ['comments of C++', notGenerated(/^(?:packages|tooling)\/.*\.(?:cc|h)$/), cxxComments],
  ['error messages', notGenerated(/^packages\/[^/]+\/src\/.*\.ts$/), (file, text) => literals(file, text, isError)],
  ['test titles', notGenerated(/\.test\.ts$/), (file, text) => literals(file, text, isTest)],
]

/** True for words that nobody repeats on purpose. Names may follow each other, as in `@param memory memory of …`. */
const isSmall = (word) =>
  /^(?:an?|and|are|as|at|by|for|from|has|if|in|is|it|of|on|or|that|the|to|when|with)$/.test(word)

/** Returns what is wrong with the pieces of one area. Each piece is a file, a line number and a text. */
export function problemsOf(area, pieces) {
  const repeated = []
  const hits = []
  let words = 0
  for (const [file, line, text] of pieces) {
    words += text.match(/[A-Za-z']+/g)?.length ?? 0
    const at = ({ index, reason }) => `${file}:${line + lineAt(text, index) - 1}: ${reason.replaceAll(/\s+/g, ' ')}`
    repeated.push(
      ...writeGood(text, repeatedWords)
        .filter(({ index, offset }) => isSmall(text.substr(index, offset)))
        .map(at),
    )
    hits.push(...writeGood(text, { checks }).map(at))
  }
  if (hits.length <= (most * words) / 1000) return repeated
  return [...repeated, ...hits, `${area}: ${hits.length} in ${words} words; at most ${most} in 1,000 are allowed`]
}

/** Returns what is wrong with the message of a commit. */
export function commitProblems(message) {
  const [subject = '', blank = '', ...body] = message.trimEnd().split('\n')
  const problems = []
  if (subject.length > 72) problems.push(`has a subject of ${subject.length} characters; 72 are allowed`)
  if (/\.$/.test(subject)) problems.push('has a subject that ends with a full stop')
  if (!/^[A-Z][a-z]+ /.test(subject) || /^(?!Bring|Embed|Feed|Need|Speed)\w+(?:ed|ing|[^su]s) /.test(subject))
    problems.push('has a subject that does not open with an imperative, such as "Add" or "Keep"')
  if (blank !== '' || body.join('').trim() === '') problems.push('has no body after an empty line that says why')
  return problems
}

function newCommits() {
  const self = 'tooling/setup/prose.mjs'
  const first = capture('git', ['log', '--diff-filter=A', '--format=%H', '--', self]).trim().split('\n').at(-1)
  if (first === '') return []
  const log = capture('git', ['log', '--no-merges', '--format=%h%x00%B%x01', `${first}..HEAD`])
  return log.split('\x01\n').filter((one) => one.trim() !== '')
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  await runMain(() => {
    const files = capture('git', ['ls-files']).split('\n')
    const problems = areas.flatMap(([area, isIn, read]) => {
      const pieces = files.filter(isIn).flatMap((file) => {
        const text = readFileSync(join(root, file), 'utf8')
        return read(file, text).map(([line, piece]) => [file, line, piece])
      })
      return problemsOf(area, pieces)
    })
    for (const commit of newCommits()) {
      const [hash, message] = commit.split('\0')
      problems.push(...commitProblems(message).map((problem) => `commit ${hash} ${problem}`))
    }
    for (const problem of problems) console.error(problem)
    return problems.length > 0 ? 1 : 0
  })
