/** How a directive begins, or the question whether a file exists. */
const beginnings = /#|%:|__has_include/g
/** Line ends that NVRTC removes before it looks for directives. */
const splices = /\\\r*\n/g
/** Tests whether the compiler knows `__has_include` at all. They ask for no file. */
const knowledgeTests = ['defined', 'defined(', '#ifdef', '#ifndef']

/**
 * The file names in the `#include`s of a source, and in its questions whether a file exists. Includes in comments,
 * strings and skipped groups count too. `undefined` if a macro names a file, because only a compiler knows that name.
 *
 * Linear in the length of the source: all directives together read at most a small multiple of the text. Only a
 * contrived source needs more, such as one with a `#` in every line of a comment that never ends. The result is then
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

/** Reads a text from several places, and counts what it reads in all. */
class Reader {
  readonly #text: string
  #budget: number
  /** Where it reads next. */
  at = 0

  constructor(text: string) {
    this.#text = text
    this.#budget = 4 * text.length
  }

  /** Whether it has read more than is reasonable. */
  get isExhausted(): boolean {
    return this.#budget < 0
  }

  /** Passes a word if it comes next. */
  takes(word: string): boolean {
    if (!this.#text.startsWith(word, this.at)) return false
    this.at += word.length
    return true
  }

  /** Whether the word before has more letters. */
  isInWord(): boolean {
    return /\w/.test(this.#text.charAt(this.at))
  }

  /** Passes blanks and comments, but no line end outside a comment. */
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

  /** The name in angle brackets or quotation marks that begins here and ends on this line. */
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

/** Space, tab, vertical tab, form feed, and the carriage return, which NVRTC reads as a blank. */
function isBlank(code: number): boolean {
  return code === 32 || code === 9 || code === 11 || code === 12 || code === 13
}
