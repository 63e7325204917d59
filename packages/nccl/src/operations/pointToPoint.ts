import { ncclRecv, ncclSend } from '@shoal/nccl-sys'
import type { MemoryLike } from '@shoal/types'
import { submitToPeer } from '../group/submit.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import { checkedRank, checkOptions, copyable, ownCount } from './counts.js'
import { memoryAt, streamAt, wireTypeOf } from './operands.js'
import type { CollectiveOptions } from './options.js'

/** The other rank. */
export interface PeerOptions {
  /** Rank of the other side. */
  readonly peer: number
}

export function send(live: LiveCommunicator, memory: MemoryLike, options: CollectiveOptions & PeerOptions): void {
  const api = 'Communicator.send'
  checkOptions(options, api)
  const peer = checkedRank(live, options.peer, 'peer', api)
  const source = memoryAt(memory, live, api, 'send', false)
  const wire = wireTypeOf(source, undefined, options.dtype, api)
  const [units, type] = copyable(wire, ownCount(source, 'send', wire, options.count, api))
  const stream = streamAt(options.stream, live, api)
  submitToPeer(live, 'ncclSend', peer, true, () => ncclSend(source.address, units, type, peer, live.handle, stream))
}

export function recv(live: LiveCommunicator, memory: MemoryLike, options: CollectiveOptions & PeerOptions): void {
  const api = 'Communicator.recv'
  checkOptions(options, api)
  const peer = checkedRank(live, options.peer, 'peer', api)
  const target = memoryAt(memory, live, api, 'recv', true)
  const wire = wireTypeOf(target, undefined, options.dtype, api)
  const [units, type] = copyable(wire, ownCount(target, 'recv', wire, options.count, api))
  const stream = streamAt(options.stream, live, api)
  submitToPeer(live, 'ncclRecv', peer, false, () => ncclRecv(target.address, units, type, peer, live.handle, stream))
}
