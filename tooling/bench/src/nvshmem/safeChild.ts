// One PE through the safe package, the counterpart of native/nvshmem.c: PE PES BYTES, and `awaited` to use promises
// instead of blocking calls.
import { type Loop, repeat, repeatAwaited, timeOf, timeOfAwaited } from '@shoal/cli/bench'
import { Device } from '@shoal/driver'
import { nvshmemVersion, Session, type SymmetricBuffer, UniqueId } from '@shoal/nvshmem'
import { serve } from '../processes/serve.js'
import { type Cases, loopOf } from './loopOf.js'

const [pe = 0, pes = 0, most = 0] = process.argv.slice(2).map(Number)
const isAwaited = process.argv[5] === 'awaited'
const device = Device.get(pe)
const stream = device.createStream({ nonBlocking: true })
const peer = { pe: (pe + 1) % pes }
const queued = { ...peer, stream }

/** The operands of the loops: symmetric memory of this PE and of its peer, and a word of the peer. */
interface Operands {
  readonly session: Session
  /** Views of the first bytes of both, created once, as a program would. In C they are pointers. */
  readonly views: (bytes: number) => { here: SymmetricBuffer<'u8'>; there: SymmetricBuffer<'u8'> }
  readonly word: SymmetricBuffer<'u64'>
}

await serve({
  ...(pe === 0 ? { makeId: () => UniqueId.create().toBytes() } : {}),
  start: async (id) => {
    const session = await Session.init({ device, rank: pe, worldSize: pes, id: UniqueId.fromBytes(id) })
    const [here, there] = [await session.allocate('u8', most), await session.allocate('u8', most)]
    const word = await session.allocate('u64', 1)
    await session.barrierAll()
    const made = new Map<number, ReturnType<Operands['views']>>()
    const views: Operands['views'] = (bytes) => {
      const known = made.get(bytes) ?? { here: here.slice(0, bytes), there: there.slice(0, bytes) }
      made.set(bytes, known)
      return known
    }
    const [blocking, awaited] = [blockingCases({ session, views, word }), awaitedCases({ session, views, word })]
    return {
      readyLine: `ready ${nvshmemVersion()}`,
      answer: (words) => (isAwaited ? timeOfAwaited(...loopOf(awaited, words)) : timeOf(...loopOf(blocking, words))),
    }
  },
})
process.exit()

function blockingCases({ session, views, word }: Operands): Cases {
  const { atomics } = session
  const wait = (): void => void stream.synchronizeSync()
  const quiet = (): void => session.quietSync()
  const put = (bytes: number): (() => void) => {
    const { here, there } = views(bytes)
    return () => void session.putOnStream(there, here, queued)
  }
  const get = (bytes: number): (() => void) => {
    const { here, there } = views(bytes)
    return () => void session.getOnStream(here, there, queued)
  }
  const waited = (call: () => void): Loop =>
    repeat(() => {
      call()
      wait()
    })
  return {
    put: (bytes) => repeat(put(bytes), wait),
    get: (bytes) => repeat(get(bytes), wait),
    'put-latency': (bytes) => waited(put(bytes)),
    'get-latency': (bytes) => waited(get(bytes)),
    'host-put': (bytes) => {
      const { here, there } = views(bytes)
      return repeat(() => session.putSync(there, here, peer))
    },
    'host-get': (bytes) => {
      const { here, there } = views(bytes)
      return repeat(() => session.getSync(here, there, peer))
    },
    p: () => repeat(() => session.putElementSync(word, 1n, peer), quiet),
    g: () => repeat(() => session.getElementSync(word, peer)),
    'atomic-add': () => repeat(() => atomics.addSync(word, 1n, peer), quiet),
    'atomic-fetch-add': () => repeat(() => atomics.fetchAddSync(word, 1n, peer)),
    'atomic-set': () => repeat(() => atomics.setSync(word, 1n, peer), quiet),
    'atomic-fetch': () => repeat(() => atomics.fetchSync(word, peer)),
    'atomic-compare-swap': () => repeat(() => atomics.compareSwapSync(word, 1n, 2n, peer)),
    barrier: () => repeat(() => session.barrierAllSync()),
    sync: () => repeat(() => session.syncAllSync()),
    'barrier-on-stream': () => repeat(() => void session.barrierAllOnStream({ stream }), wait),
  }
}

function awaitedCases({ session, views, word }: Operands): Cases<Promise<void>> {
  /** A loop over a call with both buffers. */
  const between = (call: (views: ReturnType<Operands['views']>) => Promise<unknown>) => (bytes: number) => {
    const both = views(bytes)
    return repeatAwaited(() => call(both))
  }
  return {
    'put-latency': between(async ({ here, there }) => {
      await session.putOnStream(there, here, queued)
      await stream.synchronize()
    }),
    'get-latency': between(async ({ here, there }) => {
      await session.getOnStream(here, there, queued)
      await stream.synchronize()
    }),
    'host-put': between(({ here, there }) => session.put(there, here, peer)),
    'host-get': between(({ here, there }) => session.get(here, there, peer)),
    'atomic-fetch-add': () => repeatAwaited(() => session.atomics.fetchAdd(word, 1n, peer)),
    barrier: () => repeatAwaited(() => session.barrierAll()),
    sync: () => repeatAwaited(() => session.syncAll()),
  }
}
