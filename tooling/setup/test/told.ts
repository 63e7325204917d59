import ts from 'typescript-api'

/** A comment after a statement that states what the statement prints, or its value. */
export interface Told {
  /** Counted from 0. */
  readonly line: number
  readonly comment: string
}

/** Matches comments that start like a value. After other statements than `console.log`, most comments are words. */
const valueLike = /^(?:-?\d[\w.]*|true|false|undefined|null)(?:$|[:;,] )/

/**
 * Rewrites a program so that it reports the values that its comments state: the output of each `console.log` with a
 * comment after it, and the value of each expression with a comment after it. After the value, such a comment may
 * continue with a colon, a semicolon or a comma.
 */
export function tellValues(source: string): { text: string; told: Told[] } {
  const file = ts.createSourceFile('program.mts', source, ts.ScriptTarget.Latest, true)
  const comments = new Map<number, string>()
  for (const [line, text] of source.split('\n').entries()) {
    const comment = /\S.*[^:]\/\/ (.*)$/.exec(text)?.[1]
    if (comment !== undefined) comments.set(line, comment.trim())
  }
  const told: Told[] = []
  const edits: { from: number; to: number; by: string }[] = []
  const lineOf = (position: number): number => file.getLineAndCharacterOfPosition(position).line
  const visit = (node: ts.Node): void => {
    const [start, end] = [node.getStart(file), node.getEnd()]
    const line = lineOf(end)
    const comment = comments.get(line)
    if (comment !== undefined && ts.isCallExpression(node) && node.expression.getText(file) === 'console.log') {
      told.push({ line, comment })
      edits.push({ from: start, to: start + 'console.log('.length, by: `__tell(${line}, ` })
    } else if (comment !== undefined && ts.isExpressionStatement(node) && valueLike.test(comment)) {
      if (!/console\.log/.test(node.getText(file))) {
        told.push({ line, comment })
        edits.push({ from: start, to: end, by: `__tell(${line}, ${node.expression.getText(file)})` })
      }
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  let text = source
  for (const { from, to, by } of edits.sort((one, other) => other.from - one.from)) {
    text = text.slice(0, from) + by + text.slice(to)
  }
  return { text: `${preamble}${text}`, told }
}

const preamble = `import { format as __format } from 'node:util'
const __tell = (line, ...values) => { process.stdout.write(JSON.stringify(['told', line, __format(...values)]) + '\\n') }
`

/** Returns the comments that contradict the output of the program. */
export function wrongComments(told: readonly Told[], output: string): string[] {
  const printed = output
    .split('\n')
    .filter((line) => line.startsWith('["told",'))
    .map((line) => JSON.parse(line) as [string, number, string])
  return told.flatMap(({ line, comment }) => {
    const values = printed.filter(([, at]) => at === line).map(([, , value]) => value)
    if (values.length === 0) return [`line ${line + 1} says "${comment}" and prints nothing`]
    return values
      .filter((value) => !says(comment, value))
      .map((value) => `line ${line + 1} says "${comment}" and prints "${value}"`)
  })
}

function says(comment: string, value: string): boolean {
  if (/^0x[\da-f]+$/i.test(comment)) return Number(comment) === Number(value)
  return comment === value || [': ', '; ', ', '].some((end) => comment.startsWith(value + end))
}
