import { Device, type Stream } from '@shoal/driver'
import { nvshmemVersion, Session, type SymmetricBuffer, UniqueId } from '@shoal/nvshmem'
import { serve } from '../processes/serve.js'

/** What the loops of a PE work on. */
export interface SafePe {
  readonly session: Session
  readonly stream: Stream
  /** The next PE. */
  readonly peer: { readonly pe: number }
  /** Symmetric memory, on this PE and on the other: the first `bytes` of each. */
  readonly views: (bytes: number) => { here: SymmetricBuffer<'u8'>; there: SymmetricBuffer<'u8'> }
  /** One word of the other PE. */
  readonly word: SymmetricBuffer<'u64'>
}

/** Answers requests as one PE: PE PES BYTES on the command line. */
export async function servePe(
  answerFor: (safe: SafePe) => (words: readonly string[]) => number | Promise<number>,
): Promise<void> {
  const [pe = 0, pes = 0, most = 0] = process.argv.slice(2).map(Number)
  const device = Device.get(pe)
  const stream = device.createStream({ nonBlocking: true })
  await serve({
    ...(pe === 0 ? { makeId: () => UniqueId.create().toBytes() } : {}),
    start: async (bytes) => {
      const session = await Session.init({ device, rank: pe, worldSize: pes, id: UniqueId.fromBytes(bytes) })
      const [here, there] = [await session.allocate('u8', most), await session.allocate('u8', most)]
      const word = await session.allocate('u64', 1)
      await session.barrierAll()
      // Made once, as a program would do: in C they are pointers.
      const made = new Map<number, ReturnType<SafePe['views']>>()
      const views: SafePe['views'] = (size) => {
        const known = made.get(size) ?? { here: here.slice(0, size), there: there.slice(0, size) }
        made.set(size, known)
        return known
      }
      const answer = answerFor({ session, stream, peer: { pe: (pe + 1) % pes }, views, word })
      return { readyLine: `ready ${nvshmemVersion()}`, answer }
    },
  })
  process.exit()
}
