// One rank in a separate process, for the cases in processes.ts.
import { Device, DeviceBuffer } from '@shoal/driver'
import { Communicator, UniqueId } from '@shoal/nccl'

export interface RankTask {
  readonly rank: number
  readonly ranks: number
  readonly elements: number
  /** `leave` ends the process while work is in flight and everything is open. */
  readonly ending: 'destroy' | 'leave'
}

export type RankMessage =
  | { readonly kind: 'id'; readonly id: string }
  | { readonly kind: 'result'; readonly wrong: number }

const { rank, ranks, elements, ending } = JSON.parse(process.argv[2] ?? '{}') as RankTask
const elementOf = (of: number, i: number): number => ((i * 31 + of * 17) % 1001) - 500

async function sharedId(): Promise<UniqueId> {
  if (rank === 0) {
    const id = UniqueId.create()
    process.send?.({ kind: 'id', id: id.toString() } satisfies RankMessage)
    return id
  }
  const message = await new Promise<unknown>((resolve) => process.once('message', resolve))
  return UniqueId.fromBase64((message as { id: string }).id)
}

const device = Device.get(rank)
const communicator = await Communicator.initRank({ device, rank, worldSize: ranks, id: await sharedId() })
const stream = device.createStream()
const buffer = DeviceBuffer.from(
  device,
  Float32Array.from({ length: elements }, (_, i) => elementOf(rank, i)),
)

if (ending === 'leave') {
  for (let i = 0; i < 50; i += 1) communicator.allReduce(buffer, buffer, { op: 'max', stream })
  // The delay lets the other ranks finish. This rank awaits, destroys and disposes of nothing.
  setTimeout(() => process.exit(0), 1000)
} else {
  communicator.allReduce(buffer, buffer, { op: 'sum', stream })
  const result = await buffer.toArray({ stream })
  let wrong = 0
  for (let i = 0; i < elements; i += 1) {
    let expected = 0
    for (let other = 0; other < ranks; other += 1) expected += elementOf(other, i)
    if (result[i] !== expected) wrong += 1
  }
  await communicator.destroy()
  buffer.dispose()
  stream.dispose()
  process.send?.({ kind: 'result', wrong } satisfies RankMessage)
  process.disconnect()
}
