import { isCapturing, keepCaptured, useInCaptured } from '@shoal/driver/basics'
import { isMemoryLike, memoryProtocol, type StreamArgument } from '@shoal/types'
import { streamHandleAt } from '../arguments/operands.js'
import type { LiveCommunicator } from './live.js'
import { registrationsWithin, requireRegistered } from './registeredRanges.js'

/**
 * Keeps an operation's objects alive while a graph that captured it can launch.
 *
 * These are its communicator, its memory, and NCCL's registrations of that memory. Does nothing for other streams.
 */
export function keepInGraphs(live: LiveCommunicator, stream: bigint, operands: readonly unknown[]): void {
  if (!isCapturing()) return
  const needs = new Map<object, () => void>([[live, () => live.requireUsable('GraphExec.launch')]])
  for (const operand of operands) {
    if (!isMemoryLike(operand)) continue
    for (const registered of registrationsWithin(operand[memoryProtocol]))
      needs.set(registered, () => requireRegistered(registered))
  }
  keepCaptured(live.context, stream, operands, needs)
  useInCaptured(live.context, stream, live.graphs)
}

/** Like {@link keepInGraphs}, for a stream argument of the program. */
export function keepOnStream(live: LiveCommunicator, stream: unknown, operands: readonly unknown[]): void {
  const { handle } = streamHandleAt(stream as StreamArgument, live, 'Communicator')
  keepInGraphs(live, handle, operands)
}
