// One PE through the safe package, with calls that are awaited.
import { repeatAwaited } from '@shoal/cli/bench'
import { servePe } from './safe.js'
import { timedAwaited } from './timed.js'

await servePe(({ session, stream, peer, views, word }) => {
  const queued = { ...peer, stream }
  return timedAwaited({
    'put-latency': (bytes) => {
      const { here, there } = views(bytes)
      return repeatAwaited(async () => {
        await session.putOnStream(there, here, queued)
        await stream.synchronize()
      })
    },
    'get-latency': (bytes) => {
      const { here, there } = views(bytes)
      return repeatAwaited(async () => {
        await session.getOnStream(here, there, queued)
        await stream.synchronize()
      })
    },
    'host-put': (bytes) => {
      const { here, there } = views(bytes)
      return repeatAwaited(() => session.put(there, here, peer))
    },
    'host-get': (bytes) => {
      const { here, there } = views(bytes)
      return repeatAwaited(() => session.get(here, there, peer))
    },
    'atomic-fetch-add': () => repeatAwaited(() => session.atomics.fetchAdd(word, 1n, peer)),
    barrier: () => repeatAwaited(() => session.barrierAll()),
    sync: () => repeatAwaited(() => session.syncAll()),
  })
})
