import {
  CUdevResource,
  type CUdevResourceDesc,
  CUdevResourceType,
  type CUgreenCtx,
  type CUstream,
  cuCtxFromGreenCtx,
  cuCtxPushCurrent,
  cuDevResourceGenerateDesc,
  cuGreenCtxCreate,
  cuGreenCtxDestroy,
  cuGreenCtxGetDevResource,
  cuGreenCtxGetId,
  cuGreenCtxRecordEvent,
  cuGreenCtxStreamCreate,
  cuGreenCtxWaitEvent,
} from '@shoal/cuda-sys/driver'
import {
  DisposedError,
  isArray,
  type OptionKeys,
  outOfRange,
  requireInstance,
  requireInteger,
  requireList,
  requireMade,
  requireOptions,
  type StreamLike,
  streamProtocol,
  wrongType,
} from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { type EventLike, requireEventLike } from '../../core/context/eventLike.js'
import type { ReleaseCall } from '../../core/context/releases.js'
import type { Device } from '../../core/device/device.js'
import { check, checkRelease } from '../../core/errors.js'
import { forgetLeak, Resource, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { Stream } from '../../core/stream/stream.js'
import { DeviceResource } from './deviceResource.js'

/** Options of a green context's stream. Such a stream never waits for the legacy default stream. */
export interface GreenStreamOptions {
  /** Priority within `device.streamPriorityRange`. A lower number runs first. Default: 0. */
  readonly priority?: number | undefined
}

const streamKeys: OptionKeys<GreenStreamOptions> = { priority: true }
// CU_GREEN_CTX_DEFAULT_STREAM and CU_STREAM_NON_BLOCKING, which are both required.
const withDefaultStream = 1
const nonBlocking = 1

/**
 * A part of a device for separate kernels (`cuGreenCtxCreate`). Kernels on the streams of a green context run only on
 * its multiprocessors. The green context shares memory, events and kernels with the device's primary context.
 *
 * @example
 * const { groups: [few], remaining } = DeviceResource.of(device).split(16, { groups: 1 })
 * using urgent = GreenContext.create(few)
 * using rest = GreenContext.create(remaining)
 * using stream = urgent.createStream({ priority: -1 })
 * kernel.launch({ grid, block, stream }, x, y)
 */
export class GreenContext extends Resource {
  protected readonly kind = 'GreenContext'
  /** The primary context of its device. */
  readonly context: Context
  readonly #handle: CUgreenCtx
  readonly #forget: () => void

  private constructor(context: Context, handle: CUgreenCtx) {
    requireMade(handle, 'GreenContext', 'GreenContext.create')
    super()
    this.context = context
    this.#handle = handle
    context._addChild()
    // A green context retains the primary context, even after a reset. Destroy it now: later it could not be destroyed.
    const forget = context._beforeClose((reason) => {
      if (reason === 'reset') checkRelease(cuGreenCtxDestroy(handle), 'cuGreenCtxDestroy')
    })
    this.#forget = forget
    watchForLeak(this, `A GreenContext of device ${context.device.ordinal}`, () => {
      destroy(context, handle, forget)
      return 'it was destroyed now'
    })
  }

  /**
   * Creates a green context from one or several parts of a device (`cuDevResourceGenerateDesc`, `cuGreenCtxCreate`).
   * @throws TypeError, RangeError for parts of several devices; StatusError; VersionTooOldError before CUDA 12.4
   */
  static create(resources: DeviceResource | readonly DeviceResource[]): GreenContext {
    const api = 'GreenContext.create'
    const given = isArray(resources) ? requireList(resources, api, 'resources') : [resources]
    if (given.length === 0) throw outOfRange(api, 'resources', 'at least one part of a device', 0)
    const parts = given.map((part, index) => {
      const name = isArray(resources) ? `resources[${index}]` : 'resources'
      return requireInstance<DeviceResource>(part, api, name, DeviceResource as never)
    })
    const device = parts[0]?.device as Device
    for (const [index, part] of parts.entries()) {
      if (part.device.ordinal !== device.ordinal) {
        throw outOfRange(api, `resources[${index}]`, `of device ${device.ordinal}`, part.device.ordinal)
      }
    }
    const bytes = new Uint8Array(CUdevResource.size * parts.length)
    for (const [index, part] of parts.entries()) bytes.set(part._bytes, index * CUdevResource.size)
    const context = device.primaryContext
    const out = scratch()
    check(cuDevResourceGenerateDesc(out, bytes, parts.length), 'cuDevResourceGenerateDesc')
    const description = out.u64[0] as CUdevResourceDesc
    check(cuGreenCtxCreate(out, description, device.handle, withDefaultStream), 'cuGreenCtxCreate')
    return new GreenContext(context, out.u64[0] as CUgreenCtx)
  }

  /** The `CUgreenCtx`. @throws DisposedError */
  get handle(): CUgreenCtx {
    this._requireAlive()
    this.context._requireAlive()
    return this.#handle
  }

  /** The device of the green context. */
  get device(): Device {
    return this.context.device
  }

  /** Unique number of the context in this process (`cuGreenCtxGetId`). @throws VersionTooOldError before CUDA 12.9 */
  get id(): bigint {
    const out = scratch()
    check(cuGreenCtxGetId(this.handle, out), 'cuGreenCtxGetId')
    return out.u64[0] as bigint
  }

  /** The multiprocessors of the green context (`cuGreenCtxGetDevResource`). */
  get resource(): DeviceResource {
    const bytes = new Uint8Array(CUdevResource.size)
    const { CU_DEV_RESOURCE_TYPE_SM: type } = CUdevResourceType
    check(cuGreenCtxGetDevResource(this.handle, bytes, type), 'cuGreenCtxGetDevResource')
    return new DeviceResource(this.device, bytes)
  }

  /**
   * The green context as a `CUcontext`, for raw functions and other libraries: the primary context, limited to this
   * part of the device (`cuCtxFromGreenCtx`). It ends with this object.
   */
  get contextHandle(): bigint {
    const out = scratch()
    check(cuCtxFromGreenCtx(out, this.handle), 'cuCtxFromGreenCtx')
    return out.u64[0] as bigint
  }

  /**
   * Makes the green context current on the thread until `popContext()` (`cuCtxFromGreenCtx`, `cuCtxPushCurrent`).
   * Streams that other libraries create meanwhile belong to the green context. A green context can be current on only
   * one thread at a time.
   */
  push(): void {
    check(cuCtxPushCurrent(this.contextHandle as never), 'cuCtxPushCurrent')
  }

  /**
   * Creates a stream whose kernels run in this part of the device (`cuGreenCtxStreamCreate`). After the green context
   * was disposed of, the stream throws `DisposedError`, but still needs its own dispose().
   * @throws TypeError, RangeError for a priority that the device does not have; StatusError; VersionTooOldError before
   * CUDA 12.5
   */
  createStream(options: GreenStreamOptions = {}): Stream {
    const api = 'GreenContext.createStream'
    const { context, handle } = this
    const { priority = 0 } = requireOptions(options, api, streamKeys)
    const { greatest, least } = context.streamPriorityRange
    requireInteger(priority, api, 'priority', greatest, least)
    const out = scratch()
    check(cuGreenCtxStreamCreate(out, handle, nonBlocking, priority), 'cuGreenCtxStreamCreate')
    return Stream._adoptFrom(context, out.u64[0] as CUstream, this.#lender(out.u64[0] as bigint))
  }

  /** Returns the owner of a stream. The stream is usable while this object is. */
  #lender(handle: bigint): StreamLike {
    const { context } = this
    const isGone = (): boolean => this._disposed
    return {
      get [streamProtocol]() {
        if (isGone()) throw new DisposedError('GreenContext')
        return { version: 0, handle, deviceOrdinal: context.device.ordinal, context: context._handle } as const
      },
    }
  }

  /**
   * Records an event after all current work of the context's streams (`cuGreenCtxRecordEvent`).
   * @throws TypeError for an event of another context; DisposedError, StatusError
   */
  record<E extends EventLike>(event: E): E {
    const api = 'GreenContext.record'
    const { context, handle } = requireEventLike(event, api)
    if (context._handle !== this.context._handle) throw wrongType(api, 'event', 'an Event of this device', event)
    check(cuGreenCtxRecordEvent(this.handle, handle), 'cuGreenCtxRecordEvent')
    return event
  }

  /**
   * Makes all later work of the context's streams wait for an event (`cuGreenCtxWaitEvent`). @throws as {@link record}
   */
  waitEvent(event: EventLike): void {
    const { handle } = requireEventLike(event, 'GreenContext.waitEvent')
    check(cuGreenCtxWaitEvent(this.handle, handle), 'cuGreenCtxWaitEvent')
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.context.device.ordinal, handle: this.#handle }
  }

  /** Destroys the green context and frees its part of the device (`cuGreenCtxDestroy`). */
  protected release(): void {
    forgetLeak(this)
    destroy(this.context, this.#handle, this.#forget)
  }
}

function destroy(context: Context, handle: CUgreenCtx, forget: () => void): void {
  const call: ReleaseCall = {
    make: () => cuGreenCtxDestroy(handle),
    check: (status) => checkRelease(status, 'cuGreenCtxDestroy'),
  }
  context._releases.add('A GreenContext', [call], () => {
    forget()
    context._removeChild()
  })
}
