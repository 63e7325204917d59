import type { nvshmemx_float_put_signal_on_stream } from '@shoal/nvshmem-sys'
import { dtypeInfo, type OptionKeys, requireInteger, requireKeyOf, requireOptions } from '@shoal/types'
import { sizedFamily } from '../families.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { checkTransfer, type LocalMemory, streamAt, transferRoles } from '../operands.js'
import type { LiveSession } from '../queue/liveSession.js'
import { startOnStream } from '../queue/onStream.js'
import { type SignalOp, signalOps } from '../signals/operators.js'
import { signalAt } from '../signals/signalAt.js'
import { toNative } from '../values.js'
import { type StreamTransferOptions, streamTransferKeys } from './types.js'

/** Options of a put on a stream with a signal to the other PE. */
export interface PutSignalOptions extends StreamTransferOptions {
  /** Symmetric `u64` memory. The other PE's word is updated when the elements have arrived. */
  readonly signal: SymmetricBuffer<'u64'>
  /** Index in `signal`. Default: 0. */
  readonly signalIndex?: number | undefined
  /** Value to set the word to, or to add to it. */
  readonly value: bigint | number
  /** Whether to set the word to `value` or to add `value`. Default: `'set'`. */
  readonly op?: SignalOp | undefined
}

const putSignalKeys: OptionKeys<PutSignalOptions> = {
  ...streamTransferKeys,
  signal: true,
  signalIndex: true,
  value: true,
  op: true,
}

type PutSignal = typeof nvshmemx_float_put_signal_on_stream

const calls = sizedFamily<PutSignal>('nvshmemx_', 'nvshmemx_put', '_put_signal_on_stream', '_signal_on_stream')
const nonBlockingCalls = sizedFamily<PutSignal>(
  'nvshmemx_',
  'nvshmemx_put',
  '_put_signal_nbi_on_stream',
  '_signal_nbi_on_stream',
)

/** Queues a put with a signal, which NVSHMEM offers for streams and kernels only. */
export function queuePutSignal(
  live: LiveSession,
  target: SymmetricBuffer,
  source: LocalMemory,
  options: PutSignalOptions,
  isNonBlocking: boolean,
): Promise<void> {
  const api = `Session.putSignal${isNonBlocking ? 'NonBlocking' : ''}OnStream`
  requireOptions(options, api, putSignalKeys)
  const pe = requireInteger(options.pe, api, 'pe', 0, live.peCount - 1)
  const { dtype, count, remote, local, bytes } = checkTransfer(
    live,
    transferRoles.put,
    target,
    source,
    false,
    options.count,
    api,
  )
  const signal = signalAt(live, options.signal, options.signalIndex, api, 'signal', 'signalIndex')
  requireApart(remote, bytes, signal, api)
  const value = toNative('u64', options.value, api, 'value')
  const op = requireKeyOf(options.op === undefined ? 'set' : options.op, api, 'op', signalOps)
  const stream = streamAt(live, options.stream, api, source)
  const call = (isNonBlocking ? nonBlockingCalls : calls)(dtype) as PutSignal
  const queue = (): void => call(remote, local, count, signal, value, op, pe, stream)
  const uses = [target, source, options.signal]
  return startOnStream(live, { api, stream, given: options.stream, call: queue, uses })
}

function requireApart(target: bigint, bytes: number, signal: bigint, api: string): void {
  if (signal + BigInt(dtypeInfo('u64').bytes) <= target || signal >= target + BigInt(bytes)) return
  throw new RangeError(`${api}: the signal lies within the target`)
}
