// One PE through the safe package, with calls that block, as those of the C program.
import { servePe } from './safe.js'
import { timed } from './timed.js'

await servePe(({ session, stream, peer, views, word }) => {
  const queued = { ...peer, stream }
  const { atomics } = session
  return timed({
    put: (bytes, count) => {
      const { here, there } = views(bytes)
      for (let i = 0; i < count; i += 1) void session.putOnStream(there, here, queued)
      stream.synchronizeSync()
    },
    get: (bytes, count) => {
      const { here, there } = views(bytes)
      for (let i = 0; i < count; i += 1) void session.getOnStream(here, there, queued)
      stream.synchronizeSync()
    },
    'put-latency': (bytes, count) => {
      const { here, there } = views(bytes)
      for (let i = 0; i < count; i += 1) {
        void session.putOnStream(there, here, queued)
        stream.synchronizeSync()
      }
    },
    'get-latency': (bytes, count) => {
      const { here, there } = views(bytes)
      for (let i = 0; i < count; i += 1) {
        void session.getOnStream(here, there, queued)
        stream.synchronizeSync()
      }
    },
    'host-put': (bytes, count) => {
      const { here, there } = views(bytes)
      for (let i = 0; i < count; i += 1) session.putSync(there, here, peer)
    },
    'host-get': (bytes, count) => {
      const { here, there } = views(bytes)
      for (let i = 0; i < count; i += 1) session.getSync(here, there, peer)
    },
    p: (_, count) => {
      for (let i = 0; i < count; i += 1) session.putElementSync(word, 1n, peer)
      session.quietSync()
    },
    g: (_, count) => {
      for (let i = 0; i < count; i += 1) session.getElementSync(word, peer)
    },
    'atomic-add': (_, count) => {
      for (let i = 0; i < count; i += 1) atomics.addSync(word, 1n, peer)
      session.quietSync()
    },
    'atomic-fetch-add': (_, count) => {
      for (let i = 0; i < count; i += 1) atomics.fetchAddSync(word, 1n, peer)
    },
    'atomic-set': (_, count) => {
      for (let i = 0; i < count; i += 1) atomics.setSync(word, 1n, peer)
      session.quietSync()
    },
    'atomic-fetch': (_, count) => {
      for (let i = 0; i < count; i += 1) atomics.fetchSync(word, peer)
    },
    'atomic-compare-swap': (_, count) => {
      for (let i = 0; i < count; i += 1) atomics.compareSwapSync(word, 1n, 2n, peer)
    },
    barrier: (_, count) => {
      for (let i = 0; i < count; i += 1) session.barrierAllSync()
    },
    sync: (_, count) => {
      for (let i = 0; i < count; i += 1) session.syncAllSync()
    },
    'barrier-on-stream': (_, count) => {
      for (let i = 0; i < count; i += 1) void session.barrierAllOnStream({ stream })
      stream.synchronizeSync()
    },
  })
})
