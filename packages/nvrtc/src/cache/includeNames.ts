/** Start of a directive, or of a test whether a file exists. */
const beginnings = /#|%:|__has_include/g
/** Line continuations, which NVRTC removes before it looks for directives. */
const splices = /\\\r*\n/g
/** Tests whether the compiler supports `__has_include`. They name no file. */
const knowledgeTests = ['defined', 'defined(', '#ifdef', '#ifndef']

/**
 * Returns the file names in `#include` directives and `__has_include` tests of a source.
 *
 * Includes in comments, strings and skipped groups count too. `undefined` if a macro names a file, because only a
 * compiler can expand it.
 *
 * Linear in the length of the source: all directives together read at most a small multiple of the text. Only a
 * contrived source needs more, such as one with a `#` in every line of an unterminated comment. The result is then
 * `undefined`.
 */
export function includeNames(source: string): string[] | undefined {
  const text = source.replaceAll(splices, '')
  if (!text.includes('include')) return []
  const names: string[] = []
  const reader = new Reader(text)
  for (const { 0: beginning, index } of text.matchAll(beginnings)) {
    if (reader.isExhausted) return undefined
    const isQuestion = beginning === '__has_include'
    reader.at = index + beginning.length
    if (!isQuestion) {
      reader.skipBlanks()
      if (!reader.takes('include')) continue
    }
    reader.takes('_next')
    if (reader.isInWord()) continue
    reader.skipBlanks()
    if (isQuestion) {
      if (!reader.takes('(')) {
        if (isKnowledgeTest(text, index)) continue
        return undefined
      }
      reader.skipBlanks()
    }
    const name = reader.fileName()
    if (name === undefined) return undefined
    names.push(name)
  }
  return names
}

function isKnowledgeTest(text: string, end: number): boolean {
  const before = text.slice(Math.max(0, end - 64), end).replaceAll(/[ \t]/g, '')
  return knowledgeTests.some((each) => before.endsWith(each))
}

/** Reads a text at several positions and counts the characters it reads. */
class Reader {
  readonly #text: string
  #budget: number
  /** Position of the next read. */
  at = 0

  constructor(text: string) {
    this.#text = text
    this.#budget = 4 * text.length
  }

  /** True if it has read more than its budget. */
  get isExhausted(): boolean {
    return this.#budget < 0
  }

  /** Skips a word if it comes next. */
  takes(word: string): boolean {
    if (!this.#text.startsWith(word, this.at)) return false
    this.at += word.length
    return true
  }

  /** True if the previous word continues. */
  isInWord(): boolean {
    return /\w/.test(this.#text.charAt(this.at))
  }

  /** Skips blanks and comments, but no line end outside a comment. */
  skipBlanks(): void {
    const start = this.at
    for (;;) {
      while (isBlank(this.#text.charCodeAt(this.at))) this.at += 1
      if (!this.#text.startsWith('/*', this.at)) break
      const end = this.#text.indexOf('*/', this.at + 2)
      this.at = end < 0 ? this.#text.length : end + 2
    }
    this.#budget -= this.at - start
  }

  /** Returns the name in brackets or quotation marks here, if it ends on this line. */
  fileName(): string | undefined {
    const start = this.at + 1
    const closing = this.takes('<') ? '>' : this.takes('"') ? '"' : undefined
    if (closing === undefined) return undefined
    let end = start
    while (end < this.#text.length && this.#text[end] !== '\n' && this.#text[end] !== closing) end += 1
    this.#budget -= end - start
    return end > start && this.#text[end] === closing ? this.#text.slice(start, end) : undefined
  }
}

/** Space, tab, vertical tab, form feed, and carriage return, which NVRTC treats as a blank. */
function isBlank(code: number): boolean {
  return code === 32 || code === 9 || code === 11 || code === 12 || code === 13
}
