import type { DType } from '@shoal/types'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import type { LocalMemory, LocalOperand } from '../operands.js'
import type { WaitOptions } from '../queue/callQueue.js'
import { type LiveSession, whenOpen } from '../queue/liveSession.js'
import type { ElementOf, ElementValue } from '../values.js'
import { queueTransfer, startTransfer, transferAndWait, transferSync } from './contiguous.js'
import {
  type ElementOptions,
  getElement,
  getElementOnStream,
  getElementSync,
  putElement,
  putElementSync,
  queuePutElement,
  type StreamElementOptions,
  type WaitingElementOptions,
} from './element.js'
import { type PutSignalOptions, queuePutSignal } from './putSignal.js'
import {
  queueStrided,
  type StreamStridedOptions,
  type StridedOptions,
  strided,
  stridedSync,
  type WaitingStridedOptions,
} from './strided.js'
import type { StreamTransferOptions, TransferOptions, WaitingTransferOptions } from './types.js'

/** Moving elements between this process and the symmetric memory of a PE: the transfers of `Session`. */
export abstract class TransferOperations {
  /** @internal The session, for an operation that is about to use it. */
  protected readonly _live: LiveSession

  /** @internal */
  constructor(live: LiveSession) {
    this._live = live
  }

  /**
   * Copies elements of `source`, memory of this process, into `target` of PE `pe` (`nvshmem_<type>_put`). When the
   * promise settles `source` may be used again; the elements have arrived after `quiet()` or a barrier.
   */
  put(target: SymmetricBuffer, source: LocalOperand, options: WaitingTransferOptions): Promise<void> {
    return whenOpen(this._live, 'put', () => transferAndWait(this._live, 'put', target, source, options))
  }

  /** Like {@link put}, and blocks the thread. @throws SessionBusyError */
  putSync(target: SymmetricBuffer, source: LocalOperand, options: TransferOptions): void {
    this._live.requireOpen('Session.putSync')
    transferSync(this._live, 'put', target, source, options)
  }

  /** Starts a put that `quiet()` waits for (`nvshmem_<type>_put_nbi`); `source` must stay as it is until then. */
  putNonBlocking(target: SymmetricBuffer, source: LocalMemory, options: TransferOptions): Promise<void> {
    return whenOpen(this._live, 'putNonBlocking', () => startTransfer(this._live, 'put', target, source, options))
  }

  /** Queues a put on a stream (`nvshmemx_<type>_put_on_stream`). */
  putOnStream(target: SymmetricBuffer, source: LocalMemory, options: StreamTransferOptions): Promise<void> {
    return queueTransfer(this._live, 'put', target, source, options, false)
  }

  /** Queues the start of a put on a stream; `quietOnStream` completes it (`nvshmemx_<type>_put_nbi_on_stream`). */
  putNonBlockingOnStream(target: SymmetricBuffer, source: LocalMemory, options: StreamTransferOptions): Promise<void> {
    return queueTransfer(this._live, 'put', target, source, options, true)
  }

  /**
   * Copies elements of `source` of PE `pe` into `target`, memory of this process, where they are when the promise
   * settles (`nvshmem_<type>_get`).
   */
  get(target: LocalOperand, source: SymmetricBuffer, options: WaitingTransferOptions): Promise<void> {
    return whenOpen(this._live, 'get', () => transferAndWait(this._live, 'get', target, source, options))
  }

  /** Like {@link get}, and blocks the thread. @throws SessionBusyError */
  getSync(target: LocalOperand, source: SymmetricBuffer, options: TransferOptions): void {
    this._live.requireOpen('Session.getSync')
    transferSync(this._live, 'get', target, source, options)
  }

  /** Starts a get whose elements are there after `quiet()` (`nvshmem_<type>_get_nbi`). */
  getNonBlocking(target: LocalMemory, source: SymmetricBuffer, options: TransferOptions): Promise<void> {
    return whenOpen(this._live, 'getNonBlocking', () => startTransfer(this._live, 'get', target, source, options))
  }

  /** Queues a get on a stream (`nvshmemx_<type>_get_on_stream`). */
  getOnStream(target: LocalMemory, source: SymmetricBuffer, options: StreamTransferOptions): Promise<void> {
    return queueTransfer(this._live, 'get', target, source, options, false)
  }

  /** Queues the start of a get on a stream; `quietOnStream` completes it (`nvshmemx_<type>_get_nbi_on_stream`). */
  getNonBlockingOnStream(target: LocalMemory, source: SymmetricBuffer, options: StreamTransferOptions): Promise<void> {
    return queueTransfer(this._live, 'get', target, source, options, true)
  }

  /** Writes one element of PE `pe` (`nvshmem_<type>_p`). It has arrived after `quiet()` or a barrier. */
  putElement<D extends DType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<void> {
    return whenOpen(this._live, 'putElement', () => putElement(this._live, target, value, options))
  }

  /** Like {@link putElement}, and blocks the thread. @throws SessionBusyError */
  putElementSync<D extends DType>(target: SymmetricBuffer<D>, value: ElementValue<D>, options: ElementOptions): void {
    this._live.requireOpen('Session.putElementSync')
    putElementSync(this._live, target, value, options)
  }

  /** Queues the writing of one element on a stream (`nvshmemx_<type>_p_on_stream`). */
  putElementOnStream<D extends DType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: StreamElementOptions,
  ): Promise<void> {
    return whenOpen(this._live, 'putElementOnStream', () => queuePutElement(this._live, target, value, options))
  }

  /** One element of PE `pe` (`nvshmem_<type>_g`); halves as the number they stand for. */
  getElement<D extends DType>(source: SymmetricBuffer<D>, options: WaitingElementOptions): Promise<ElementOf<D>> {
    return whenOpen(this._live, 'getElement', () => getElement(this._live, source, options) as Promise<ElementOf<D>>)
  }

  /** Like {@link getElement}, and blocks the thread. @throws SessionBusyError */
  getElementSync<D extends DType>(source: SymmetricBuffer<D>, options: ElementOptions): ElementOf<D> {
    this._live.requireOpen('Session.getElementSync')
    return getElementSync(this._live, source, options) as ElementOf<D>
  }

  /** One element of PE `pe` as it is when a stream gets there, which is waited for (`nvshmemx_<type>_g_on_stream`). */
  getElementOnStream<D extends DType>(
    source: SymmetricBuffer<D>,
    options: StreamElementOptions & WaitOptions,
  ): Promise<ElementOf<D>> {
    const read = (): Promise<ElementOf<D>> => getElementOnStream(this._live, source, options) as Promise<ElementOf<D>>
    return whenOpen(this._live, 'getElementOnStream', read)
  }

  /** Copies every so manieth element to every so manieth of PE `pe` (`nvshmem_<type>_iput`); see {@link put}. */
  putStrided(target: SymmetricBuffer, source: LocalOperand, options: WaitingStridedOptions): Promise<void> {
    return whenOpen(this._live, 'putStrided', () => strided(this._live, 'put', target, source, options))
  }

  /** Like {@link putStrided}, and blocks the thread. @throws SessionBusyError */
  putStridedSync(target: SymmetricBuffer, source: LocalOperand, options: StridedOptions): void {
    this._live.requireOpen('Session.putStridedSync')
    stridedSync(this._live, 'put', target, source, options)
  }

  /** Queues it on a stream (`nvshmemx_<type>_iput_on_stream`). */
  putStridedOnStream(target: SymmetricBuffer, source: LocalMemory, options: StreamStridedOptions): Promise<void> {
    return whenOpen(this._live, 'putStridedOnStream', () => queueStrided(this._live, 'put', target, source, options))
  }

  /** Copies every so manieth element of PE `pe` to every so manieth here (`nvshmem_<type>_iget`); see {@link get}. */
  getStrided(target: LocalOperand, source: SymmetricBuffer, options: WaitingStridedOptions): Promise<void> {
    return whenOpen(this._live, 'getStrided', () => strided(this._live, 'get', target, source, options))
  }

  /** Like {@link getStrided}, and blocks the thread. @throws SessionBusyError */
  getStridedSync(target: LocalOperand, source: SymmetricBuffer, options: StridedOptions): void {
    this._live.requireOpen('Session.getStridedSync')
    stridedSync(this._live, 'get', target, source, options)
  }

  /** Queues it on a stream (`nvshmemx_<type>_iget_on_stream`). */
  getStridedOnStream(target: LocalMemory, source: SymmetricBuffer, options: StreamStridedOptions): Promise<void> {
    return whenOpen(this._live, 'getStridedOnStream', () => queueStrided(this._live, 'get', target, source, options))
  }

  /**
   * Queues a put on a stream, and after it a signal to the same PE (`nvshmemx_<type>_put_signal_on_stream`): who sees
   * the signal sees the elements.
   */
  putSignalOnStream(target: SymmetricBuffer, source: LocalMemory, options: PutSignalOptions): Promise<void> {
    return whenOpen(this._live, 'putSignalOnStream', () => queuePutSignal(this._live, target, source, options, false))
  }

  /** The same, completed by `quietOnStream` (`nvshmemx_<type>_put_signal_nbi_on_stream`). */
  putSignalNonBlockingOnStream(target: SymmetricBuffer, source: LocalMemory, options: PutSignalOptions): Promise<void> {
    return whenOpen(this._live, 'putSignalNonBlockingOnStream', () =>
      queuePutSignal(this._live, target, source, options, true),
    )
  }
}
