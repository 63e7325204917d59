import type { cudaStream_t } from '@shoal/nvshmem-sys'
import {
  type DType,
  dtypes,
  type OptionKeys,
  requireInteger,
  requireOptions,
  type WaitOptions,
  waitKeys,
} from '@shoal/types'
import { dtypesOf, type Family, typedFamily } from '../families.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { elementAt, type StreamOperand, streamAt } from '../operands.js'
import { waitOf } from '../queue/callQueue.js'
import type { LiveSession } from '../queue/liveSession.js'
import { startOnStream } from '../queue/onStream.js'
import { fromNative, toNative } from '../values.js'

/** Selects an element of a PE. */
export interface ElementOptions {
  /** The PE, from 0 to `peCount` - 1. */
  readonly pe: number
  /** Index in the buffer. Default: 0. */
  readonly index?: number | undefined
}

/** Selects an element, with limits of the wait. */
export type WaitingElementOptions = ElementOptions & WaitOptions

/** Selects an element, with a stream. */
export interface StreamElementOptions extends ElementOptions {
  /**
   * Stream to queue on: a stream object, a bare `cudaStream_t`, or null for the default stream. Default: the stream of
   * `Stream.use`, else the default stream.
   */
  readonly stream?: StreamOperand | undefined
}

export const elementKeys: OptionKeys<ElementOptions> = { pe: true, index: true }
export const waitingElementKeys: OptionKeys<WaitingElementOptions> = { ...elementKeys, ...waitKeys }
const streamElementKeys: OptionKeys<StreamElementOptions> = { ...elementKeys, stream: true }
const waitingStreamElementKeys: OptionKeys<StreamElementOptions & WaitOptions> = { ...streamElementKeys, ...waitKeys }

// Values and results of 64-bit types are bigints; each function of the table gets the type that its dtype needs.
type Put = (address: bigint, value: number | bigint, pe: number) => void
type Get = (address: bigint, pe: number) => number | bigint
type PutOnStream = (address: bigint, value: number | bigint, pe: number, stream: cudaStream_t) => void
type GetOnStream = (address: bigint, pe: number, stream: cudaStream_t) => number | bigint

const putElements: Family<Put> = typedFamily('nvshmem_', '_p')
const getElements: Family<Get> = typedFamily('nvshmem_', '_g')
const putElementsOnStream: Family<PutOnStream> = typedFamily('nvshmemx_', '_p_on_stream')
const getElementsOnStream: Family<GetOnStream> = typedFamily('nvshmemx_', '_g_on_stream')

function find<F>(family: Family<F>, dtype: DType, api: string): F {
  const call = family(dtype)
  if (call !== undefined) return call
  throw new TypeError(`${api}: NVSHMEM has no single elements of ${dtype}; it has ${dtypesOf(family, dtypes)}`)
}

interface Element {
  readonly address: bigint
  readonly dtype: DType
  readonly pe: number
}

function check<O extends ElementOptions>(
  live: LiveSession,
  buffer: unknown,
  options: O,
  keys: OptionKeys<O>,
  parameter: string,
  api: string,
): Element {
  requireOptions(options, api, keys)
  const pe = requireInteger(options.pe, api, 'pe', 0, live.peCount - 1)
  return { ...elementAt(live, buffer, options.index, api, parameter), pe }
}

export async function putElement(
  live: LiveSession,
  target: SymmetricBuffer,
  value: unknown,
  options: WaitingElementOptions,
): Promise<void> {
  const api = 'Session.putElement'
  const { address, dtype, pe } = check(live, target, options, waitingElementKeys, 'target', api)
  const call = find(putElements, dtype, api)
  const native = toNative(dtype, value, api, 'value')
  await live.queue.run(api, () => call(address, native, pe), { wait: waitOf(options) })
}

export function putElementSync(
  live: LiveSession,
  target: SymmetricBuffer,
  value: unknown,
  options: ElementOptions,
): void {
  const api = 'Session.putElementSync'
  const { address, dtype, pe } = check(live, target, options, elementKeys, 'target', api)
  const call = find(putElements, dtype, api)
  const native = toNative(dtype, value, api, 'value')
  live.queue.callSync(api, () => call(address, native, pe))
}

export async function getElement(
  live: LiveSession,
  source: SymmetricBuffer,
  options: WaitingElementOptions,
): Promise<number | bigint> {
  const api = 'Session.getElement'
  const { address, dtype, pe } = check(live, source, options, waitingElementKeys, 'source', api)
  const call = find(getElements, dtype, api)
  const [value] = await live.queue.run(api, () => call(address, pe), { wait: waitOf(options) })
  return fromNative(dtype, value)
}

export function getElementSync(live: LiveSession, source: SymmetricBuffer, options: ElementOptions): number | bigint {
  const api = 'Session.getElementSync'
  const { address, dtype, pe } = check(live, source, options, elementKeys, 'source', api)
  const call = find(getElements, dtype, api)
  return fromNative(
    dtype,
    live.queue.callSync(api, () => call(address, pe)),
  )
}

export function queuePutElement(
  live: LiveSession,
  target: SymmetricBuffer,
  value: unknown,
  options: StreamElementOptions,
): Promise<void> {
  const api = 'Session.putElementOnStream'
  const { address, dtype, pe } = check(live, target, options, streamElementKeys, 'target', api)
  const call = find(putElementsOnStream, dtype, api)
  const native = toNative(dtype, value, api, 'value')
  const stream = streamAt(live, options.stream, api)
  const put = (): void => call(address, native, pe, stream)
  return startOnStream(live, { api, stream, given: options.stream, call: put, uses: [target] })
}

/** Waits for the stream, because C returns the value. */
export async function getElementOnStream(
  live: LiveSession,
  source: SymmetricBuffer,
  options: StreamElementOptions & WaitOptions,
): Promise<number | bigint> {
  const api = 'Session.getElementOnStream'
  const { address, dtype, pe } = check(live, source, options, waitingStreamElementKeys, 'source', api)
  const call = find(getElementsOnStream, dtype, api)
  const stream = streamAt(live, options.stream, api)
  const read = (): unknown => call(address, pe, stream)
  const [value] = await live.queue.run(api, read, { wait: waitOf(options), operands: [options.stream] })
  return fromNative(dtype, value)
}
