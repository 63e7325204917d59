import { createInterface } from 'node:readline'

/** One process of a crew, in Node: what it does before and after all have met. */
export interface Server {
  /** The id by which they meet; only the first process makes it. */
  readonly makeId?: () => Uint8Array
  /** Meets the others; gives back the line that says so and what answers requests. */
  readonly start: (id: Uint8Array) => Promise<{ readonly greeting: string; readonly answer: Answer }>
}

export type Answer = (words: readonly string[]) => number | string | Promise<number | string>

/** Answers requests on standard input, as the C programs in `native` do, until it ends. */
export async function serve({ makeId, start }: Server): Promise<void> {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  say(makeId === undefined ? 'waiting' : `id ${Buffer.from(makeId()).toString('hex')}`)
  const { value, done } = await lines.next()
  if (done === true) return
  const id = /^start ([0-9a-f]+)$/.exec(value)?.[1]
  if (id === undefined) throw new Error(`no id in '${value}'`)
  const { greeting, answer } = await start(Buffer.from(id, 'hex'))
  say(greeting)
  for (;;) {
    const request = await lines.next()
    if (request.done === true) return
    say(String(await answer(request.value.split(' '))))
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
