import { createInterface } from 'node:readline'

/** One process of a group, in Node. */
export interface RankProgram {
  /** Creates the id for connecting; only in the first process. */
  readonly makeId?: () => Uint8Array
  /** Connects to the others. Returns the line to print then, and the function that answers requests. */
  readonly start: (id: Uint8Array) => Promise<{ readonly readyLine: string; readonly answer: Answer }>
}

export type Answer = (words: readonly string[]) => number | string | Promise<number | string>

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()

/**
 * Prints that the program is ready, and answers requests on standard input until its end, like the C programs in
 * `native`.
 */
export async function answerRequests(readyLine: string, answer: Answer): Promise<void> {
  writeLine(readyLine)
  for (;;) {
    const request = await lines.next()
    if (request.done === true) return
    writeLine(String(await answer(request.value.split(' '))))
  }
}

/** The same as one rank of several, which connect before they answer. */
export async function serve({ makeId, start }: RankProgram): Promise<void> {
  writeLine(makeId === undefined ? 'waiting' : `id ${Buffer.from(makeId()).toString('hex')}`)
  const { value, done } = await lines.next()
  if (done === true) return
  const id = /^start ([0-9a-f]+)$/.exec(value)?.[1]
  if (id === undefined) throw new Error(`no id in '${value}'`)
  const { readyLine, answer } = await start(Buffer.from(id, 'hex'))
  await answerRequests(readyLine, answer)
}

function writeLine(line: string): void {
  process.stdout.write(`${line}\n`)
}
