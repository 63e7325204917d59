import { type Mutant, operators } from './mutant.js'

/**
 * Returns every fault that can be made in a C++ source without parsing it. The source is expected to be formatted:
 * operators stand between spaces. Half of the kinds are omissions: of a lock, a status, a term or a statement.
 */
export function cxxMutants(file: string, text: string): Mutant[] {
  const code = withoutWords(text)
  const found: Mutant[] = []
  const add = (kind: string, start: number, length: number, replacement: string): void => {
    found.push({ kind, file, start, end: start + length, replacement })
  }
  for (const match of code.matchAll(/(?<=[\w)\]] )([=!<>]=|[<>+\-*/%&|]|&&|\|\||<<|>>|[+-]=)(?= [\w(!*&~-])/g)) {
    add('operator', match.index, match[0].length, operators[match[0]] as string)
  }
  for (const match of code.matchAll(/\b(?:true|false)\b/g)) {
    add('boolean', match.index, match[0].length, match[0] === 'true' ? 'false' : 'true')
  }
  for (const match of code.matchAll(/(?<![\w.'])\d+(?![\w.'])/g))
    add('number', match.index, match[0].length, `${Number(match[0]) + 1}`)
  for (const match of code.matchAll(/\bstd::(min|max)\b/g)) {
    add('another function', match.index, match[0].length, match[1] === 'min' ? 'std::max' : 'std::min')
  }
  for (const match of code.matchAll(/\bif \(/g)) {
    const start = match.index + match[0].length
    const end = closing(code, start)
    const condition = text.slice(start, end)
    const status = /^const (\w+) (\w+) = ([^;]+)$/.exec(condition)
    if (status !== null) add('status ignored', start, end - start, `(${status[3]}, false)`)
    else if (!/;| = /.test(code.slice(start, end))) {
      add('condition turned round', start, end - start, `!(${condition})`)
      add('condition never true', start, end - start, `false && (${condition})`)
    }
  }
  // Terms that a programmer can forget: offsets, high words, conditions.
  for (const match of code.matchAll(/(?<=[\w)\]]) (?:[+\-|&]|&&|\|\|) [\w.:]+(?:->[\w.]+)*(?:\([^()]*\))?(?=[;),])/g)) {
    add('term left out', match.index, match[0].length, '')
  }
  const call =
    /(?<=[;{}]\s*\n\s+)(?!return\b|throw\b|delete\b|else\b|if\b|for\b|while\b|switch\b)[\w:.]+(?:->[\w.]+)*\([^;{}]*\);(?=\n)/g
  for (const match of code.matchAll(call)) add('statement left out', match.index, match[0].length, ';')
  const assignment = /(?<=[;{}]\s*\n\s+)[\w.\->[\]]+ [+\-|&]?= [^;{}\n]+;(?=\n)/g
  for (const match of code.matchAll(assignment)) add('statement left out', match.index, match[0].length, ';')
  // Objects that work until the end of their scope: locks, contexts, counts of users.
  const scope =
    /(?<=\n\s+)(?:const )?(?:std::(?:lock_guard|unique_lock|scoped_lock)|[\w:]*(?:Scope|Context|Waiting|Current|Held|OnStream))\b \w+\([^;{}]*\);(?=\n)/g
  for (const match of code.matchAll(scope)) add('scope left out', match.index, match[0].length, ';')
  return found
}

/**
 * Returns the text with comments, literals, preprocessor lines and assertions replaced by spaces. Every other character
 * keeps its position.
 */
function withoutWords(text: string): string {
  const words =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|^[ \t]*(?:#|static_assert|template|using)[^\n]*/gm
  return text.replaceAll(words, (word) => word.replaceAll(/[^\n]/g, ' '))
}

/** Returns the position of the parenthesis that closes the one that is open at `from`. */
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
