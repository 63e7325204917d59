// One PE through the safe package, with calls that block, as those of the C program.
import { repeat } from '@shoal/cli/bench'
import { servePe } from './safe.js'
import { timed } from './timed.js'

await servePe(({ session, stream, peer, views, word }) => {
  const queued = { ...peer, stream }
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
  const waited = (call: () => void) => (): void => {
    call()
    wait()
  }
  return timed({
    put: (bytes) => repeat(put(bytes), wait),
    get: (bytes) => repeat(get(bytes), wait),
    'put-latency': (bytes) => repeat(waited(put(bytes))),
    'get-latency': (bytes) => repeat(waited(get(bytes))),
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
  })
})
