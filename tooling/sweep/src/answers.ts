// What each side writes: one JSON object a line.
import { existsSync, readFileSync } from 'node:fs'

/**
 * Bytes as hexadecimal text, a text that was followed to, or several (each as its bytes; `null` where there is none).
 */
export type Output = string | null | readonly (string | null)[]

export interface Answer {
  readonly step: number
  /** what the function returned, where it returns a number or nothing */
  readonly status?: number | null
  /** the bytes of a text that it returned */
  readonly text?: string | null
  /** the bytes of a struct that it returned */
  readonly result?: string
  readonly outs?: readonly Output[]
  /** it wrote beyond an out-parameter */
  readonly overrun?: true
  /** the library or the header does not have the function */
  readonly missing?: true
  /** a value that it needs was not available */
  readonly unasked?: true
  /** this side refused the call */
  readonly error?: string
}

export interface Answers {
  readonly answers: ReadonlyMap<number, Answer>
  /** step that was begun last */
  readonly last: number | undefined
  readonly complete: boolean
}

/** Reads what a side wrote, as far as it came. */
export function readAnswers(file: string): Answers {
  const answers = new Map<number, Answer>()
  let last: number | undefined
  let complete = false
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
  for (const line of lines) {
    if (!line.endsWith('}')) continue // cut off in the middle
    const entry = JSON.parse(line) as Answer & { begin?: number; end?: true }
    if (entry.end) complete = true
    else if (entry.begin !== undefined) last = entry.begin
    else answers.set(entry.step, entry)
  }
  return { answers, last, complete }
}
