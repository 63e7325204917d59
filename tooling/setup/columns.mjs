#!/usr/bin/env node
// Checks that comments in TypeScript and JavaScript have at most 120 columns, in all sources or in the named ones.
// `--write` refills the paragraphs with lines that are too long. Biome checks the columns of code.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseSync } from 'rolldown/utils'
import { capture, root } from './workspace.mjs'

const columns = 120
const generated = /(^|\/)generated\//
/** Lines that start a paragraph of their own, such as list items, tags and code fences. */
const beginsAnew = /^(?:@|[-*|#>] |\||\d+\. |```|$)/
const isDirective = (text) => /^\s*(?:@ts-|biome-ignore|eslint-)/.test(text)

/** Returns the text with comments in lines of at most 120 columns, and the lines that a person must shorten. */
export function fitted(file, text) {
  const edits = []
  const left = []
  for (const block of blocksOf(file, text)) {
    if (!block.lines.some(isLong)) continue
    const lines = block.isAlone ? filled(block) : block.lines
    if (lines.join('\n') !== block.lines.join('\n')) edits.push({ ...block, replacement: lines.join('\n') })
    const first = text.slice(0, block.start).split('\n').length
    for (const [index, line] of lines.entries()) if (isLong(line)) left.push(first + index)
  }
  let result = text
  for (const { start, end, replacement } of edits.reverse())
    result = result.slice(0, start) + replacement + result.slice(end)
  return { text: result, left }
}

const isLong = (line) => [...line].length > columns && !/https?:\S{60}/.test(line)

/** Returns comments as blocks of whole lines. Line comments that follow each other form one block. */
function blocksOf(file, text) {
  const blocks = []
  for (const { type, start, end } of parseSync(file, text).comments) {
    // The parser counts the line that names the interpreter as a comment.
    if (text.startsWith('#!', start)) continue
    const from = text.lastIndexOf('\n', start - 1) + 1
    const after = text.indexOf('\n', end)
    const to = after < 0 ? text.length : after
    const isAlone = text.slice(from, start).trim() === '' && text.slice(end, to).trim() === ''
    const block = {
      type,
      start: from,
      end: to,
      indent: text.slice(from, start),
      isAlone,
      lines: text.slice(from, to).split('\n'),
    }
    const last = blocks.at(-1)
    const isMore = isAlone && last?.isAlone && type === 'Line' && last.type === 'Line' && last.end + 1 === from
    if (!isMore || last.indent !== block.indent) blocks.push(block)
    else {
      last.end = to
      last.lines.push(...block.lines)
    }
  }
  return blocks
}

function filled({ type, indent, lines }) {
  if (type === 'Line') {
    const texts = lines.map((line) => line.slice(indent.length + 2).replace(/^ /, ''))
    return fill(texts, columns - indent.length - 3).map((line) => `${indent}//${line === '' ? '' : ` ${line}`}`)
  }
  const opening = /^\s*(\/\*\*?)/.exec(lines[0])[1]
  const texts = lines.map((line, index) => {
    let inside =
      index === 0 ? line.slice(indent.length + opening.length) : line.replace(/^\s*\*(?!\/)|^\s*(?=\*\/)/, '')
    if (index === lines.length - 1) inside = inside.replace(/\s*\*\/\s*$/, '')
    return inside.replace(/^ /, '')
  })
  if (texts[0] === '') texts.shift()
  if (texts.at(-1) === '') texts.pop()
  const body = fill(texts, columns - indent.length - 3)
  return [`${indent}${opening}`, ...body.map((line) => `${indent} *${line === '' ? '' : ` ${line}`}`), `${indent} */`]
}

/** Refills the paragraphs that have a line that is too long. All other paragraphs stay unchanged. */
function fill(texts, width) {
  const result = []
  let isExample = false
  let isFenced = false
  let paragraph = []
  const flush = () => {
    const isTooLong = paragraph.some((line) => [...line].length > width)
    result.push(...(isTooLong ? wrapped(paragraph, width) : paragraph))
    paragraph = []
  }
  for (const line of texts) {
    if (beginsAnew.test(line) || isExample || isFenced || isDirective(line)) flush()
    if (line.startsWith('@')) isExample = line.startsWith('@example')
    const isFence = line.startsWith('```')
    if (isFence) isFenced = !isFenced
    const isCode = isExample || isFenced || isFence
    paragraph.push(line)
    if (isCode || line === '' || isDirective(line)) {
      result.push(...paragraph)
      paragraph = []
    }
  }
  flush()
  return result
}

function wrapped(lines, width) {
  const hanging = /^\s*/.exec(lines[1] ?? (/^(?:- |\d+\. )/.test(lines[0]) ? '  ' : ''))[0]
  const words = lines
    .join(' ')
    .trim()
    .match(/(?:\{@\w+ [^}]*\}|\S)+/g)
  const result = []
  let line = /^\s*/.exec(lines[0])[0]
  let isEmpty = true
  for (const word of words) {
    if (!isEmpty && [...line].length + 1 + [...word].length > width) {
      result.push(line)
      line = hanging
      isEmpty = true
    }
    line += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return [...result, line]
}

function sources() {
  const listed = capture('git', ['ls-files', '*.ts', '*.mts', '*.cts', '*.js', '*.mjs', '*.cjs']).split('\n')
  return listed.filter((file) => file !== '' && !generated.test(file))
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const isWriting = process.argv.includes('--write')
  const named = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
  const problems = (named.length > 0 ? named : sources()).flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    // Looking for long lines is faster than parsing.
    if (!text.split('\n').some(isLong)) return []
    const { text: better, left } = fitted(file, text)
    if (isWriting && better !== text) writeFileSync(join(root, file), better)
    const lines =
      isWriting || better === text ? left : [text.slice(0, firstDifference(text, better)).split('\n').length]
    return lines.map(
      (line) => `${file}:${line}: a comment has more than ${columns} columns: \`pnpm format\` fills its lines`,
    )
  })
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  process.exitCode = problems.length > 0 ? 1 : 0
}

function firstDifference(one, other) {
  let index = 0
  while (one[index] === other[index]) index += 1
  return index
}
