import type { DType, WaitOptions } from '@shoal/types'
import { PublicObject } from '@shoal/types'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import type { LocalMemory, LocalOperand } from '../operands.js'
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

/** Transfers between this process and the symmetric memory of a PE; base class of `Session`. */
export abstract class TransferOperations extends PublicObject {
  /** @internal The session. */
  protected readonly _live: LiveSession

  /** @internal */
  constructor(live: LiveSession) {
    super()
    this._live = live
  }

  /**
   * Copies local elements of `source` to `target` of PE `pe` (`nvshmem_<type>_put`).
   *
   * `source` may change when the promise settles. The elements have arrived after `quiet()` or a barrier.
   */
  put(target: SymmetricBuffer, source: LocalOperand, options: WaitingTransferOptions): Promise<void> {
    return whenOpen(this._live, 'put', () => transferAndWait(this._live, 'put', target, source, options))
  }

  /** Like {@link put}, but blocks the thread. @throws BusyError */
  putSync(target: SymmetricBuffer, source: LocalOperand, options: TransferOptions): void {
    this._live.requireOpen('Session.putSync')
    transferSync(this._live, 'put', target, source, options)
  }

  /** Starts a put (`nvshmem_<type>_put_nbi`). `quiet()` completes it; until then `source` must not change. */
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
   * Copies elements of `source` of PE `pe` to local `target` (`nvshmem_<type>_get`).
   *
   * The elements have arrived when the promise settles.
   */
  get(target: LocalOperand, source: SymmetricBuffer, options: WaitingTransferOptions): Promise<void> {
    return whenOpen(this._live, 'get', () => transferAndWait(this._live, 'get', target, source, options))
  }

  /** Like {@link get}, but blocks the thread. @throws BusyError */
  getSync(target: LocalOperand, source: SymmetricBuffer, options: TransferOptions): void {
    this._live.requireOpen('Session.getSync')
    transferSync(this._live, 'get', target, source, options)
  }

  /** Starts a get (`nvshmem_<type>_get_nbi`). `quiet()` completes it. */
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

  /** Writes one element of PE `pe` (`nvshmem_<type>_p`). The element has arrived after `quiet()` or a barrier. */
  putElement<D extends DType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<void> {
    return whenOpen(this._live, 'putElement', () => putElement(this._live, target, value, options))
  }

  /** Like {@link putElement}, but blocks the thread. @throws BusyError */
  putElementSync<D extends DType>(target: SymmetricBuffer<D>, value: ElementValue<D>, options: ElementOptions): void {
    this._live.requireOpen('Session.putElementSync')
    putElementSync(this._live, target, value, options)
  }

  /** Queues {@link putElement} on a stream (`nvshmemx_<type>_p_on_stream`). */
  putElementOnStream<D extends DType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: StreamElementOptions,
  ): Promise<void> {
    return whenOpen(this._live, 'putElementOnStream', () => queuePutElement(this._live, target, value, options))
  }

  /** Returns one element of PE `pe` (`nvshmem_<type>_g`); `f16` and `bf16` as numbers. */
  getElement<D extends DType>(source: SymmetricBuffer<D>, options: WaitingElementOptions): Promise<ElementOf<D>> {
    return whenOpen(this._live, 'getElement', () => getElement(this._live, source, options) as Promise<ElementOf<D>>)
  }

  /** Like {@link getElement}, but blocks the thread. @throws BusyError */
  getElementSync<D extends DType>(source: SymmetricBuffer<D>, options: ElementOptions): ElementOf<D> {
    this._live.requireOpen('Session.getElementSync')
    return getElementSync(this._live, source, options) as ElementOf<D>
  }

  /** Returns one element of PE `pe` in stream order, and waits for the stream (`nvshmemx_<type>_g_on_stream`). */
  getElementOnStream<D extends DType>(
    source: SymmetricBuffer<D>,
    options: StreamElementOptions & WaitOptions,
  ): Promise<ElementOf<D>> {
    const read = (): Promise<ElementOf<D>> => getElementOnStream(this._live, source, options) as Promise<ElementOf<D>>
    return whenOpen(this._live, 'getElementOnStream', read)
  }

  /** Puts elements at equal distances (`nvshmem_<type>_iput`); see {@link put}. */
  putStrided(target: SymmetricBuffer, source: LocalOperand, options: WaitingStridedOptions): Promise<void> {
    return whenOpen(this._live, 'putStrided', () => strided(this._live, 'put', target, source, options))
  }

  /** Like {@link putStrided}, but blocks the thread. @throws BusyError */
  putStridedSync(target: SymmetricBuffer, source: LocalOperand, options: StridedOptions): void {
    this._live.requireOpen('Session.putStridedSync')
    stridedSync(this._live, 'put', target, source, options)
  }

  /** Queues {@link putStrided} on a stream (`nvshmemx_<type>_iput_on_stream`). */
  putStridedOnStream(target: SymmetricBuffer, source: LocalMemory, options: StreamStridedOptions): Promise<void> {
    return whenOpen(this._live, 'putStridedOnStream', () => queueStrided(this._live, 'put', target, source, options))
  }

  /** Gets elements at equal distances (`nvshmem_<type>_iget`); see {@link get}. */
  getStrided(target: LocalOperand, source: SymmetricBuffer, options: WaitingStridedOptions): Promise<void> {
    return whenOpen(this._live, 'getStrided', () => strided(this._live, 'get', target, source, options))
  }

  /** Like {@link getStrided}, but blocks the thread. @throws BusyError */
  getStridedSync(target: LocalOperand, source: SymmetricBuffer, options: StridedOptions): void {
    this._live.requireOpen('Session.getStridedSync')
    stridedSync(this._live, 'get', target, source, options)
  }

  /** Queues {@link getStrided} on a stream (`nvshmemx_<type>_iget_on_stream`). */
  getStridedOnStream(target: LocalMemory, source: SymmetricBuffer, options: StreamStridedOptions): Promise<void> {
    return whenOpen(this._live, 'getStridedOnStream', () => queueStrided(this._live, 'get', target, source, options))
  }

  /**
   * Queues a put and a later signal to the same PE (`nvshmemx_<type>_put_signal_on_stream`).
   *
   * A PE that sees the signal also sees the elements.
   */
  putSignalOnStream(target: SymmetricBuffer, source: LocalMemory, options: PutSignalOptions): Promise<void> {
    return whenOpen(this._live, 'putSignalOnStream', () => queuePutSignal(this._live, target, source, options, false))
  }

  /** Like {@link putSignalOnStream}, completed by `quietOnStream` (`nvshmemx_<type>_put_signal_nbi_on_stream`). */
  putSignalNonBlockingOnStream(target: SymmetricBuffer, source: LocalMemory, options: PutSignalOptions): Promise<void> {
    return whenOpen(this._live, 'putSignalNonBlockingOnStream', () =>
      queuePutSignal(this._live, target, source, options, true),
    )
  }
}
