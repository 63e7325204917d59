import { type NativeCall, signedSlots32, slots32, slots64 } from '@shoal/ffi/calls'
import { nccl } from '@shoal/nccl-sys'

let call: NativeCall | undefined
const twoTo32 = 2 ** 32

/**
 * `ncclAllReduce` without the checks of the generated function, which the caller has made already: what training loops do
 * most. Returns the status.
 */
export function allReduceCall(
  send: bigint,
  recv: bigint,
  count: number,
  type: number,
  op: number,
  communicator: bigint,
  stream: bigint,
): number {
  call ??= nccl.bind('ncclAllReduce', 2000, 7)
  slots64[0] = send
  slots64[1] = recv
  slots32[4] = count
  slots32[5] = count / twoTo32
  signedSlots32[6] = type
  signedSlots32[8] = op
  slots64[5] = communicator
  slots64[6] = stream
  return call()
}
