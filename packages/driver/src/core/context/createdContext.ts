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

/** How a context is made. */
export interface CreatedContextOptions extends Partial<ContextFlags> {
  /** How many multiprocessors it may use, where MPS serves the device. Default: all. */
  readonly execAffinity?: number | undefined
}

const optionKeys: OptionKeys<CreatedContextOptions> = { ...contextFlagKeys, execAffinity: true }

/**
 * A context beside the primary one (`cuCtxCreate`): what is made in it (pass it where a device is taken) is apart from
 * what libcudart, NCCL and NVSHMEM use. `dispose()` destroys it as soon as nothing lives in it; until then it takes
 * nothing new.
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
   * Makes a context; the current one of the thread stays.
   * @throws TypeError, RangeError; StatusError, for `execAffinity` where no MPS serves the device; VersionTooOldError
   * before CUDA 12.5
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
      // It was made the current one.
      check(cuCtxPopCurrent(out), 'cuCtxPopCurrent')
    } catch (error) {
      context.dispose()
      throw error
    }
    return context
  }

  /** @internal A context of somebody else, who destroys it. */
  static _borrow(device: Device, handle: CUcontext): CreatedContext {
    return new CreatedContext(device, handle, true)
  }

  override get _isPrimary(): boolean {
    return false
  }

  /**
   * Destroys the context as soon as nothing lives in it (`cuCtxDestroy`), on a native thread; does nothing for one of
   * somebody else.
   */
  dispose(): void {
    this.#isDisposed = true
    this._close()
  }

  /** The same as {@link dispose}, but blocks this thread until the driver has destroyed the context. */
  disposeSync(): void {
    withBlockingReleases(() => this.dispose())
  }

  /** Resolves when the driver has destroyed the context. Does not wait for what still lives in it. */
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
 * Makes a context the current one of the thread, until {@link popContext} brings the one before back
 * (`cuCtxPushCurrent`). Objects of this package need none; `context.run(fn)` restores the one before by itself.
 * @throws TypeError, DisposedError, StatusError
 */
export function pushContext(context: DeviceOrContext): void {
  check(cuCtxPushCurrent(contextOf(context, 'pushContext', 'context').handle), 'cuCtxPushCurrent')
}

/**
 * Ends what {@link pushContext} began, and gives the context that was current (`cuCtxPopCurrent`). @throws StatusError
 * where none is
 */
export function popContext(): Context {
  const before = currentContext()
  check(cuCtxPopCurrent(scratch()), 'cuCtxPopCurrent')
  return before as Context
}

/**
 * The current context of the thread, whoever made it; undefined where there is none (`cuCtxGetCurrent`). That of a
 * green context is the primary context of its device.
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
