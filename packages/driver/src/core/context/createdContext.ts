import {
  type CUcontext,
  CUctxCreateParams,
  CUexecAffinityParam,
  cuCtxCreate,
  cuCtxDestroy,
  cuCtxGetCurrent,
  cuCtxGetDevice,
  cuCtxPopCurrent,
  cuCtxPushCurrent,
} from '@shoal/cuda-sys/driver'
import { callInContext, NativeMemory } from '@shoal/ffi'
import {
  DisposedError,
  doneNow,
  isInstance,
  type OptionKeys,
  requireInteger,
  requireMade,
  requireOptions,
} from '@shoal/types'
import { driverLibrary } from '../calls/driverLibrary.js'
import { Device } from '../device/device.js'
import { check, checkRelease } from '../errors.js'
import { scratch } from '../native.js'
import { awaitReleases, withBlockingReleases } from '../releasing.js'
import { Context, contextOf, type DeviceOrContext } from './context.js'
import { type ContextFlags, contextFlagKeys, encodeContextFlags } from './flags.js'
import type { ReleaseCall } from './releases.js'

/** Options of a new context. */
export interface CreatedContextOptions extends Partial<ContextFlags> {
  /** Number of multiprocessors the context may use, if MPS serves the device. Default: all. */
  readonly execAffinity?: number | undefined
}

const optionKeys: OptionKeys<CreatedContextOptions> = { ...contextFlagKeys, execAffinity: true }

/**
 * An additional context of a device, separate from the primary context (`cuCtxCreate`).
 *
 * Pass the context instead of a device to create objects in it. libcudart, NCCL and NVSHMEM use the primary context, so
 * they do not share these objects. `dispose()` destroys the context when its last object is gone. Until then, creating
 * new objects in the context throws.
 *
 * @example
 * using context = CreatedContext.create(device, { scheduling: 'blocking' })
 * using stream = Stream.create(context)
 */
export class CreatedContext extends Context {
  readonly #isBorrowed: boolean
  #isDisposed = false

  private constructor(device: Device, handle: CUcontext, isBorrowed: boolean) {
    requireMade(handle, 'CreatedContext', 'CreatedContext.create')
    super(device, handle)
    this.#isBorrowed = isBorrowed
  }

  /**
   * Creates a context. The thread's current context does not change.
   * @throws TypeError, RangeError; StatusError for `execAffinity` when MPS does not serve the device;
   * VersionTooOldError before CUDA 12.5
   */
  static create(owner: DeviceOrContext, options: CreatedContextOptions = {}): CreatedContext {
    const api = 'CreatedContext.create'
    const device = deviceOf(owner, api)
    const { execAffinity, ...flags } = requireOptions(options, api, optionKeys)
    const encoded = encodeContextFlags(flags, api)
    const { parameters, affinity } = parametersOf(execAffinity, api)
    device._cuda.start()
    const out = scratch()
    check(cuCtxCreate(out, parameters, encoded, device.handle), 'cuCtxCreate')
    void affinity
    const context = new CreatedContext(device, out.u64[0] as CUcontext, false)
    try {
      // cuCtxCreate made the new context current.
      check(cuCtxPopCurrent(out), 'cuCtxPopCurrent')
    } catch (error) {
      context.dispose()
      throw error
    }
    return context
  }

  /** @internal Wraps a context that another owner destroys. */
  static _borrow(device: Device, handle: CUcontext): CreatedContext {
    return new CreatedContext(device, handle, true)
  }

  override get _isPrimary(): boolean {
    return false
  }

  /**
   * Destroys the context on a native thread when its last object is gone (`cuCtxDestroy`). Does nothing if another
   * owner has the context.
   */
  dispose(): void {
    this.#isDisposed = true
    this._close()
  }

  /** Like {@link dispose}, but blocks this thread until the driver has destroyed the context. */
  disposeSync(): void {
    withBlockingReleases(() => this.dispose())
  }

  /** Resolves when the driver has destroyed the context. Does not wait for objects that still live in it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await awaitReleases(() => this.dispose())
    await doneNow()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  override _requireOpen(): void {
    if (this.#isDisposed) throw new DisposedError('CreatedContext')
    super._requireOpen()
  }

  override get _giveUp(): ReleaseCall | undefined {
    const { _handle: handle } = this
    if (this.#isBorrowed) return undefined
    return { make: () => cuCtxDestroy(handle), check: (status) => checkRelease(status, 'cuCtxDestroy'), context: null }
  }

  override get [Symbol.toStringTag](): string {
    return 'CreatedContext'
  }
}

/**
 * Makes a context current on the thread until {@link popContext} restores the previous one (`cuCtxPushCurrent`).
 * Objects of this package need no current context. `context.run(fn)` restores the previous context by itself.
 * @throws TypeError, DisposedError, StatusError
 */
export function pushContext(context: DeviceOrContext): void {
  check(cuCtxPushCurrent(contextOf(context, 'pushContext', 'context').handle), 'cuCtxPushCurrent')
}

/**
 * Ends {@link pushContext} and returns the context that was current (`cuCtxPopCurrent`).
 * @throws StatusError when no context is current
 */
export function popContext(): Context {
  const before = currentContext()
  check(cuCtxPopCurrent(scratch()), 'cuCtxPopCurrent')
  return before as Context
}

/**
 * Returns the thread's current context, whoever created it; undefined if there is none (`cuCtxGetCurrent`). For a green
 * context, returns the primary context of its device.
 */
export function currentContext(): Context | undefined {
  const out = scratch()
  driverLibrary.start()
  check(cuCtxGetCurrent(out), 'cuCtxGetCurrent')
  const handle = out.u64[0] as CUcontext
  if (handle === 0n) return undefined
  const known = Context._living(handle)
  if (known !== undefined) return known as Context
  callInContext(0n)
  check(cuCtxGetDevice(out), 'cuCtxGetDevice')
  const device = Device.get(out.i32[0] as number)
  const { primaryContext } = device
  return primaryContext.handle === handle ? primaryContext : CreatedContext._borrow(device, handle)
}

function deviceOf(owner: DeviceOrContext, api: string): Device {
  return isInstance(owner, Device) ? owner : contextOf(owner, api).device
}

function parametersOf(execAffinity: number | undefined, api: string) {
  if (execAffinity === undefined) return { parameters: null, affinity: undefined }
  const val = requireInteger(execAffinity, api, 'execAffinity', 1, 2 ** 31 - 1)
  const affinity = NativeMemory.allocate(CUexecAffinityParam.size)
  CUexecAffinityParam.write(affinity, { type: 0, param: { smCount: { val } } })
  const parameters = CUctxCreateParams.allocate({
    execAffinityParams: affinity.address,
    numExecAffinityParams: 1,
  })
  return { parameters, affinity }
}
