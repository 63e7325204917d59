// One of two PEs: PE SECONDS. PE 0 waits for PE 1, which starts every step SECONDS late.
import { Session, UniqueId } from '@shoal/nvshmem'
import { serveSteps } from './serveSteps.js'

const [pe = 0, seconds = 0] = process.argv.slice(2).map(Number)
let session: Session | undefined

await serveSteps(
  pe,
  seconds,
  () => UniqueId.create().toBytes(),
  (id) => ({
    init: async () => {
      session = await Session.init({ device: pe, rank: pe, worldSize: 2, id: UniqueId.fromBytes(id) })
    },
    barrier: async () => session?.barrierAll(),
  }),
)
