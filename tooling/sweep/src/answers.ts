// The format of each side's answers: one JSON object per line.
import { existsSync, readFileSync } from 'node:fs'

/**
 * One of three: bytes as hexadecimal text, a text that a pointer led to, or several of these. A text is given by its
 * bytes, and is `null` for a null pointer.
 */
export type Output = string | null | readonly (string | null)[]

export interface Answer {
  readonly step: number
  /** what the function returned, if it returns a number or nothing */
  readonly status?: number | null
  /** the bytes of a text that the function returned */
  readonly text?: string | null
  /** the bytes of a struct that the function returned */
  readonly result?: string
  readonly outs?: readonly Output[]
  /** the function wrote beyond an out-parameter */
  readonly overrun?: true
  /** the library or the header does not have the function */
  readonly missing?: true
  /** a value that the call needs was not available */
  readonly unasked?: true
  /** this side refused the call */
  readonly error?: string
}

export interface Answers {
  readonly answers: ReadonlyMap<number, Answer>
  /** the last step that began */
  readonly last: number | undefined
  readonly complete: boolean
}

/** Reads the answers of a side. The file may be incomplete. */
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
