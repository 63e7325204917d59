/** Shares memory between ports of one thread, and changes the messages between them. */
import { MessageChannel, MessagePort } from 'node:worker_threads'
import { Random } from '@shoal/conformance'
import type { DeviceBuffer } from '@shoal/driver'
import { receive, type SharedMemory, share } from '@shoal/driver/sharing'
import { mutateData, pick } from './mutate.js'

/** Values that only a structured clone can carry. */
const ofThreads: readonly (() => unknown)[] = [
  () => 1n,
  () => undefined,
  () => new SharedArrayBuffer(8),
  () => new Map([['type', 'shared-memory']]),
  () => new Uint8Array(64),
  () => new Date(0),
  () => new Error('no message'),
  () => new Array(3),
]

/** Messages of a case that are changed: the offer, those to the receiver, and those to the sender. */
interface Plan {
  readonly offer: boolean
  readonly toReceiver: boolean
  readonly toSender: boolean
}

function changed(random: Random, message: object): unknown {
  if (random.integer(0, 5) === 0) return pick(random, ofThreads)()
  return mutateData(random, message)
}

/** @returns how `receive` ended (with memory or an error) and how `share` ended (with an error or undefined) */
export async function threadCase(
  seed: number,
  buffer: DeviceBuffer,
): Promise<{ readonly received: SharedMemory | Error; readonly shared: Error | undefined }> {
  const random = new Random(seed)
  const plan: Plan = {
    offer: random.integer(0, 4) === 0,
    toReceiver: random.integer(0, 1) === 0,
    toSender: random.integer(0, 3) === 0,
  }
  const sender = new MessageChannel()
  const receiver = new MessageChannel()
  const ends = [sender.port2, receiver.port1]
  const wait = { timeout: 20_000 }
  sender.port2.on('message', (message: { shoal?: unknown; id?: unknown; port?: unknown }) => {
    if (message.shoal !== 'share' || !(message.port instanceof MessagePort)) return
    const { port: theirs } = message
    const { port1: ours, port2: port } = new MessageChannel()
    ends.push(theirs, ours)
    const relay = (from: MessagePort, to: MessagePort, isWrong: boolean): void => {
      from.on('message', (data: object) => {
        const count = isWrong ? random.integer(0, 2) : 1
        for (let index = 0; index < count; index += 1) to.postMessage(isWrong ? changed(random, data) : data)
        if (count === 0) to.close()
      })
      from.on('close', () => to.close())
    }
    relay(theirs, ours, plan.toReceiver)
    relay(ours, theirs, plan.toSender)
    const offer = { shoal: 'share', version: 1, id: message.id, port: 0 }
    const wrong = plan.offer ? (changed(random, offer) as typeof offer) : offer
    if (typeof wrong === 'object' && wrong !== null && Object.hasOwn(wrong, 'port')) {
      receiver.port1.postMessage({ ...wrong, shoal: 'share', port }, [port])
    } else {
      receiver.port1.postMessage(wrong)
      port.close()
    }
    // The receiver gets no further message, whatever it does.
    setTimeout(() => receiver.port1.close(), 5)
  })
  const caught = (error: Error): Error => error
  const shared = share(sender.port1, buffer, wait).then(() => undefined, caught)
  const received = await receive(receiver.port2, wait).catch(caught)
  for (const end of ends) end.close()
  const result = { received, shared: await shared }
  for (const port of [sender.port1, receiver.port2]) port.close()
  return result
}
