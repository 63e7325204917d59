import { type DescriptorSocket, sendHandle } from '@shoal/driver'
import { hear, isClosed } from './messages.js'
import { answer, question, type SharedArray } from './sharedArray.js'

/** How an exchange ended. */
export type Outcome = 'answered' | 'gone'

export interface ServeOptions {
  /** Runs when the importer has mapped the memory. */
  readonly whenMapped?: () => void
  readonly signal?: AbortSignal
}

/** Gives the memory to the process at the other end and waits for its answer. */
export async function serve(
  socket: DescriptorSocket,
  shared: SharedArray,
  { whenMapped, signal }: ServeOptions = {},
): Promise<Outcome> {
  shared.write(question)
  try {
    using handle = shared.memory.export('posix-fd')
    await sendHandle(socket, handle)
  } catch (error) {
    if (isClosed(error)) return leave(shared)
    throw error
  }
  for (;;) {
    const message = await hear(socket, signal)
    if (message === undefined) return leave(shared)
    if (message === 'mapped') whenMapped?.()
    if (message === 'written') break
  }
  console.log(`exporter ${process.pid}: read the answer, ${await shared.check(answer)}`)
  return 'answered'
}

async function leave(shared: SharedArray): Promise<Outcome> {
  console.log(`exporter ${process.pid}: the importer is gone without an answer; ${await shared.check(question)} still`)
  return 'gone'
}
