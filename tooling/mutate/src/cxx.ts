import { type Mutant, operators } from './mutant.js'

/** Everything that can be wrong in a source of C++, as far as its text tells: it is formatted, operators stand between spaces. */
export function cxxMutants(file: string, text: string): Mutant[] {
  const code = withoutWords(text)
  const found: Mutant[] = []
  const add = (start: number, length: number, replacement: string): void => {
    found.push({ file, start, end: start + length, replacement })
  }
  for (const match of code.matchAll(/(?<=[\w)\]] )([=!<>]=|[<>+\-*/%&|]|&&|\|\||<<|>>|[+-]=)(?= [\w(!*&~-])/g)) {
    add(match.index, match[0].length, operators[match[0]] as string)
  }
  for (const match of code.matchAll(/\b(?:true|false)\b/g)) {
    add(match.index, match[0].length, match[0] === 'true' ? 'false' : 'true')
  }
  for (const match of code.matchAll(/(?<![\w.'])\d+(?![\w.'])/g))
    add(match.index, match[0].length, `${Number(match[0]) + 1}`)
  for (const match of code.matchAll(/\bstd::(min|max)\b/g)) {
    add(match.index, match[0].length, match[1] === 'min' ? 'std::max' : 'std::min')
  }
  for (const match of code.matchAll(/\bif \(/g)) {
    const start = match.index + match[0].length
    const end = closing(code, start)
    if (!/;| = /.test(code.slice(start, end))) add(start, end - start, `!(${text.slice(start, end)})`)
  }
  const call =
    /(?<=[;{}]\s*\n\s+)(?!return\b|throw\b|delete\b|else\b|if\b|for\b|while\b|switch\b)[\w:.]+(?:->[\w.]+)*\([^;{}]*\);(?=\n)/g
  for (const match of code.matchAll(call)) add(match.index, match[0].length, ';')
  return found
}

/** The text with comments, literals, and lines of the preprocessor and of assertions blanked, every character in its place. */
function withoutWords(text: string): string {
  const words =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|^[ \t]*(?:#|static_assert|template|using)[^\n]*/gm
  return text.replaceAll(words, (word) => word.replaceAll(/[^\n]/g, ' '))
}

/** Where the parenthesis that stands open at `from` is closed. */
function closing(code: string, from: number): number {
  let depth = 1
  let at = from
  while (depth > 0 && at < code.length) {
    if (code[at] === '(') depth += 1
    if (code[at] === ')') depth -= 1
    at += 1
  }
  return at - 1
}
