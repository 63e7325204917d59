import { ncclRecv, ncclSend } from '@shoal/nccl-sys'
import { type MemoryLike, optionsChecker, requireInteger } from '@shoal/types'
import { memoryAt, streamAt, wireTypeOf } from '../arguments/operands.js'
import { beginOperation, submitToPeer } from '../group/submit.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import { copyable, ownCount } from './counts.js'
import { type CollectiveOptions, collectiveKeys } from './options.js'

/** Option that selects the other rank. */
export interface PeerOptions {
  /** The other rank. */
  readonly peer: number
}

const requirePeerOptions = optionsChecker<CollectiveOptions & PeerOptions>({ ...collectiveKeys, peer: true })

export function send(live: LiveCommunicator, memory: MemoryLike, options: CollectiveOptions & PeerOptions): void {
  const api = 'Communicator.send'
  beginOperation()
  requirePeerOptions(options, api)
  const peer = requireInteger(options.peer, api, 'peer', 0, live.worldSize - 1)
  const source = memoryAt(memory, live, api, 'memory', false)
  const wire = wireTypeOf(source, undefined, options.dtype, api)
  const [units, type] = copyable(wire, ownCount(source, 'memory', wire, options.count, api))
  const stream = streamAt(options.stream, live, api, source)
  const call = (): number => ncclSend(source.address, units, type, peer, live.handle, stream)
  submitToPeer(live, 'ncclSend', peer, true, call, memory, options.stream)
}

export function recv(live: LiveCommunicator, memory: MemoryLike, options: CollectiveOptions & PeerOptions): void {
  const api = 'Communicator.recv'
  beginOperation()
  requirePeerOptions(options, api)
  const peer = requireInteger(options.peer, api, 'peer', 0, live.worldSize - 1)
  const target = memoryAt(memory, live, api, 'memory', true)
  const wire = wireTypeOf(target, undefined, options.dtype, api)
  const [units, type] = copyable(wire, ownCount(target, 'memory', wire, options.count, api))
  const stream = streamAt(options.stream, live, api, target)
  const call = (): number => ncclRecv(target.address, units, type, peer, live.handle, stream)
  submitToPeer(live, 'ncclRecv', peer, false, call, memory, options.stream)
}
