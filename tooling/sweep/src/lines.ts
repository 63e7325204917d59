// The notation that all lists share: lines with indented lines below them, values, repetitions and macros.

/** A line with the lines that are indented below it. */
export interface Line {
  readonly text: string
  readonly inner: readonly Line[]
}

/** The members of enumerations by name, for `each` and `values`. */
export interface Enumerations {
  members(enumeration: string): readonly string[]
  values(enumeration: string): readonly number[]
}

type Names = ReadonlyMap<string, string>

/** Returns the lines of a text after `define`, `macro`, `for`, `each`, `values` and `case` are applied. */
export function expand(text: string, enumerations?: Enumerations): readonly Line[] {
  return new Expansion(enumerations).run(parse(text), new Map())
}

/** Returns the groups that a pattern matches in a text. Throws if the text does not match. */
export function match(pattern: RegExp, text: string): (string | undefined)[] {
  const found = pattern.exec(text)
  if (found === null) throw new Error(`"${text}" cannot be read`)
  return found.slice(1)
}

/** Splits a text at commas outside brackets and quotes. */
export function split(text: string): string[] {
  const parts: string[] = []
  let [depth, isQuoted, part] = [0, false, '']
  for (const letter of text) {
    if (letter === '"') isQuoted = !isQuoted
    if (!isQuoted && '([{'.includes(letter)) depth += 1
    if (!isQuoted && ')]}'.includes(letter)) depth -= 1
    if (letter !== ',' || depth > 0 || isQuoted) part += letter
    else {
      parts.push(part.trim())
      part = ''
    }
  }
  return part.trim() === '' ? parts : [...parts, part.trim()]
}

/** Parses lines by indentation, and drops comments. */
function parse(text: string): readonly Line[] {
  const top = { text: '', inner: [] as Line[] }
  const open = [{ depth: -1, line: top }]
  for (const raw of text.split('\n')) {
    const trimmed = raw.trim()
    if (trimmed === '' || trimmed.startsWith('#')) continue
    const depth = raw.length - raw.trimStart().length
    while ((open.at(-1) as { depth: number }).depth >= depth) open.pop()
    const line = { text: trimmed, inner: [] as Line[] }
    open.at(-1)?.line.inner.push(line)
    open.push({ depth, line })
  }
  return top.inner
}

/** Replaces `$names` by values, the longest name first. */
function fill(text: string, names: Names): string {
  return text.replace(/\$\w+/g, (word) => {
    for (let length = word.length; length > 1; length -= 1) {
      const value = names.get(word.slice(0, length))
      if (value !== undefined) return value + word.slice(length)
    }
    throw new Error(`${text}: ${word} has no value`)
  })
}

class Expansion {
  readonly #enumerations: Enumerations | undefined
  readonly #macros = new Map<string, { readonly parameters: readonly string[]; readonly inner: readonly Line[] }>()
  readonly #defined = new Map<string, string>()

  constructor(enumerations: Enumerations | undefined) {
    this.#enumerations = enumerations
  }

  run(lines: readonly Line[], names: Names): Line[] {
    return lines.flatMap((line) => {
      const [word = '', rest = ''] = match(/^(\S+)\s*(.*)$/, line.text)
      const filled = (text: string) => fill(text, new Map([...this.#defined, ...names]))
      if (word === 'define') {
        const [name = '', value = ''] = match(/^(\$\w+) (.*)$/, rest)
        this.#defined.set(name, value)
        return []
      }
      if (word === 'macro') {
        const [name = '', parameters = ''] = match(/^(\w+)\s*(.*)$/, rest)
        this.#macros.set(name, { parameters: split(parameters), inner: line.inner })
        return []
      }
      if (word.startsWith('+')) return this.#apply(filled(word.slice(1)), split(filled(rest)), line.inner, names)
      if (/^(for|each|values)$/.test(word)) return this.#repeat(word, rest, line.inner, names, filled)
      if (word === 'case') return this.#choose(filled(rest), line.inner, names)
      return [{ text: filled(line.text), inner: this.run(line.inner, names) }]
    })
  }

  /** Returns the lines of a macro. The lines below its use replace `+inner`. */
  #apply(name: string, values: readonly string[], below: readonly Line[], names: Names): Line[] {
    const macro = this.#macros.get(name)
    if (macro === undefined) throw new Error(`there is no macro ${name}`)
    const { parameters, inner } = macro
    if (parameters.length !== values.length) throw new Error(`${name} takes ${parameters.length} values`)
    const given = new Map(parameters.map((one, at) => [one, values[at] as string]))
    const put = (lines: readonly Line[]): readonly Line[] =>
      lines.flatMap((line) => (line.text === '+inner' ? below : [{ ...line, inner: put(line.inner) }]))
    return this.run(put(inner), new Map([...names, ...given]))
  }

  /** Handles `for $x in a b 1..3`, `each $x in ENUMERATION [except /PATTERN/]` and `values $x in ENUMERATION`. */
  #repeat(word: string, rest: string, inner: readonly Line[], names: Names, filled: (text: string) => string): Line[] {
    const [name = '', of = '', except] = match(/^(\$[$\w,]+) in (.*?)(?: except \/(.*)\/)?$/, rest)
    const source = filled(of)
    const all = word === 'for' ? source.split(' ').flatMap(range) : this.#membersOf(word, source)
    const kept = except === undefined ? all : all.filter((one) => !new RegExp(except).test(one))
    const variables = name.split(',')
    return kept.flatMap((one) => {
      const values = variables.length === 1 ? [one] : one.split(',')
      return this.run(inner, new Map([...names, ...variables.map((each, at) => [each, values[at] ?? ''] as const)]))
    })
  }

  #membersOf(word: string, enumeration: string): readonly string[] {
    const found = word === 'each' ? this.#enumerations?.members(enumeration) : this.#enumerations?.values(enumeration)
    return (found ?? []).map(String)
  }

  /** Applies the first line whose pattern matches. Nothing may follow the pattern. */
  #choose(text: string, lines: readonly Line[], names: Names): Line[] {
    for (const line of lines) {
      const [pattern = '', step = ''] = match(/^\/(\S*)\/ ?(.*)$/, line.text)
      if (!new RegExp(pattern).test(text)) continue
      return step === '' ? [] : this.run([{ text: step, inner: [] }], names)
    }
    throw new Error(`no case for ${text}`)
  }
}

/** Returns the numbers of `1..3`, or any other word unchanged. */
function range(word: string): string[] {
  const [first, last] = (/^(\d+)\.\.(\d+)$/.exec(word) ?? []).slice(1).map(Number)
  if (first === undefined || last === undefined) return [word]
  return Array.from({ length: last - first + 1 }, (_, index) => String(first + index))
}
