// One PE through the safe package, with calls that are awaited.
import { servePe } from './safe.js'
import { timedAwaited } from './timed.js'

await servePe(({ session, stream, peer, views, word }) => {
  const queued = { ...peer, stream }
  return timedAwaited({
    'put-latency': async (bytes, count) => {
      const { here, there } = views(bytes)
      for (let i = 0; i < count; i += 1) {
        await session.putOnStream(there, here, queued)
        await stream.synchronize()
      }
    },
    'get-latency': async (bytes, count) => {
      const { here, there } = views(bytes)
      for (let i = 0; i < count; i += 1) {
        await session.getOnStream(here, there, queued)
        await stream.synchronize()
      }
    },
    'host-put': async (bytes, count) => {
      const { here, there } = views(bytes)
      for (let i = 0; i < count; i += 1) await session.put(there, here, peer)
    },
    'host-get': async (bytes, count) => {
      const { here, there } = views(bytes)
      for (let i = 0; i < count; i += 1) await session.get(here, there, peer)
    },
    'atomic-fetch-add': async (_, count) => {
      for (let i = 0; i < count; i += 1) await session.atomics.fetchAdd(word, 1n, peer)
    },
    barrier: async (_, count) => {
      for (let i = 0; i < count; i += 1) await session.barrierAll()
    },
    sync: async (_, count) => {
      for (let i = 0; i < count; i += 1) await session.syncAll()
    },
  })
})
