import { createInterface } from 'node:readline'

/** One process of a group, in Node. */
export interface RankProgram {
  /** Makes the id by which they connect; only in the first process. */
  readonly makeId?: () => Uint8Array
  /** Connects to the others; returns the line that says so, and what answers requests. */
  readonly start: (id: Uint8Array) => Promise<{ readonly readyLine: string; readonly answer: Answer }>
}

export type Answer = (words: readonly string[]) => number | string | Promise<number | string>

/** Answers requests on standard input until it ends, as the C programs in `native` do. */
export async function serve({ makeId, start }: RankProgram): Promise<void> {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  writeLine(makeId === undefined ? 'waiting' : `id ${Buffer.from(makeId()).toString('hex')}`)
  const { value, done } = await lines.next()
  if (done === true) return
  const id = /^start ([0-9a-f]+)$/.exec(value)?.[1]
  if (id === undefined) throw new Error(`no id in '${value}'`)
  const { readyLine, answer } = await start(Buffer.from(id, 'hex'))
  writeLine(readyLine)
  for (;;) {
    const request = await lines.next()
    if (request.done === true) return
    writeLine(String(await answer(request.value.split(' '))))
  }
}

function writeLine(line: string): void {
  process.stdout.write(`${line}\n`)
}
