import {
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
  type CUexternalMemory,
  cuDestroyExternalMemory,
  cuExternalMemoryGetMappedBuffer,
  cuImportExternalMemory,
} from '@shoal/cuda-sys/driver'
import {
  type ElementType,
  type OptionKeys,
  optionalBoolean,
  outOfRange,
  requireCount,
  requireInteger,
  requireKeyOf,
  requireMade,
  requireOptions,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import type { ReleaseCall } from '../../core/context/releases.js'
import { checkRelease } from '../../core/errors.js'
import { forgetLeak, Resource, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { Allocation } from '../../memory/buffers/allocation.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import { nameOfType, requireElementType } from '../../memory/buffers/elementType.js'
import { importHandle } from './importHandle.js'

/** Values of `CUexternalMemoryHandleType`. */
const memoryTypes = {
  'opaque-fd': 1,
  'opaque-win32': 2,
  'opaque-win32-kmt': 3,
  'd3d12-heap': 4,
  'd3d12-resource': 5,
  'd3d11-resource': 6,
  'd3d11-resource-kmt': 7,
  'dmabuf-fd': 9,
} as const

/** Exported memory of another library, such as Vulkan. */
export interface ExternalMemoryDescription {
  /** Kind of the handle. */
  readonly type: keyof typeof memoryTypes
  /** A descriptor, or a Windows handle. The import takes ownership of a descriptor and closes it. */
  readonly handle: number | bigint
  /** Size of the memory in bytes. */
  readonly byteLength: number
  /** Whether the memory belongs to only one resource of the other library. Default: false. */
  readonly dedicated?: boolean | undefined
}

/** The part of external memory to map. */
export interface ExternalMapOptions {
  /** Start of the part in bytes. Default: 0. */
  readonly byteOffset?: number | undefined
  /** Number of elements. Default: as many as fit. */
  readonly length?: number | undefined
}

const descriptionKeys: OptionKeys<ExternalMemoryDescription> = {
  type: true,
  handle: true,
  byteLength: true,
  dedicated: true,
}
const mapKeys: OptionKeys<ExternalMapOptions> = { byteOffset: true, length: true }
const dedicatedFlag = 1

/**
 * Memory of another library, such as Vulkan, for a device (`cuImportExternalMemory`). After dispose(), the memory is
 * released when the last buffer that maps it is disposed of.
 *
 * @example
 * using memory = ExternalMemory.import(device, { type: 'opaque-fd', handle: descriptor, byteLength })
 * using pixels = memory.map('u8')
 */
export class ExternalMemory extends Resource {
  protected readonly kind = 'ExternalMemory'
  /** The context of the memory's buffers. */
  readonly context: Context
  /** Size in bytes. */
  readonly byteLength: number
  readonly #handle: CUexternalMemory
  readonly #lifetime: ExternalLifetime

  private constructor(context: Context, handle: CUexternalMemory, byteLength: number) {
    requireMade(handle, 'ExternalMemory', 'ExternalMemory.import')
    super()
    this.context = context
    this.byteLength = byteLength
    this.#handle = handle
    const lifetime = new ExternalLifetime(context, handle)
    this.#lifetime = lifetime
    watchForLeak(this, `An ExternalMemory of ${byteLength} bytes`, () => {
      lifetime.end()
      return 'it is given back with its last buffer'
    })
  }

  /**
   * Imports exported memory of another library.
   * @throws TypeError, RangeError; StatusError for memory that the driver or the platform does not support; SystemError
   * for a descriptor that is not open
   */
  static import(owner: DeviceOrContext, description: ExternalMemoryDescription): ExternalMemory {
    const api = 'ExternalMemory.import'
    const context = contextOf(owner, api)
    requireOptions(description, api, descriptionKeys, 'description')
    const type = requireKeyOf(description.type, api, 'type', memoryTypes)
    const byteLength = requireCount(description.byteLength, api, 'byteLength', 1)
    const flags = optionalBoolean(description.dedicated, api, 'dedicated', false) ? dedicatedFlag : 0
    return importHandle(description.type, description.handle, api, (handle) => {
      const described = CUDA_EXTERNAL_MEMORY_HANDLE_DESC.allocate({ type, handle, size: BigInt(byteLength), flags })
      const out = scratch()
      context._callDriver('cuImportExternalMemory', () => cuImportExternalMemory(out, described))
      return new ExternalMemory(context, out.u64[0] as CUexternalMemory, byteLength)
    })
  }

  /** The device whose work uses the memory. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** @internal The shared lifetime of buffers and arrays in this memory. */
  get _lifetime(): ExternalLifetime {
    return this.#lifetime
  }

  /** The `CUexternalMemory`. @throws DisposedError */
  get handle(): CUexternalMemory {
    this._requireAlive()
    this.context._requireAlive()
    return this.#handle
  }

  /**
   * Maps this memory, or a part of it, as device memory (`cuExternalMemoryGetMappedBuffer`). Dispose of the result.
   * @throws TypeError, RangeError for elements outside the memory; DisposedError, StatusError
   */
  map<E extends ElementType>(dtype: E, options: ExternalMapOptions = {}): DeviceBuffer<E> {
    const api = 'ExternalMemory.map'
    const { bytes, alignment } = requireElementType(dtype, api)
    requireOptions(options, api, mapKeys)
    const { byteOffset = 0 } = options
    requireInteger(byteOffset, api, 'byteOffset', 0, Math.max(this.byteLength - bytes, 0))
    if (byteOffset % alignment !== 0) {
      throw outOfRange(api, 'byteOffset', `a multiple of ${alignment} for ${nameOfType(dtype)}`, byteOffset)
    }
    const available = Math.floor((this.byteLength - byteOffset) / bytes)
    const { length = available } = options
    requireInteger(length, api, 'length', 1, available)
    const { context, handle } = this
    return DeviceBuffer._allocateWith(dtype, length, api, (size) => {
      const part = CUDA_EXTERNAL_MEMORY_BUFFER_DESC.allocate({ offset: BigInt(byteOffset), size: BigInt(size) })
      const out = scratch()
      context._callDriver('cuExternalMemoryGetMappedBuffer', () => cuExternalMemoryGetMappedBuffer(out, handle, part))
      return Allocation.adopt(context, out.u64[0] as bigint, size, { _lifetime: this.#lifetime })
    })
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.context.device.ordinal, byteLength: this.byteLength }
  }

  protected release(): void {
    forgetLeak(this)
    this.#lifetime.end()
  }
}

/** Delays the release of external memory until its last mapping is gone, as CUDA requires. */
export class ExternalLifetime {
  readonly #context: Context
  readonly #handle: CUexternalMemory
  #uses = 1

  constructor(context: Context, handle: CUexternalMemory) {
    this.#context = context
    this.#handle = handle
    context._addChild()
  }

  addUse(): void {
    this.#uses += 1
  }

  endUse(): void {
    this.#uses -= 1
    if (this.#uses > 0) return
    const context = this.#context
    const handle = this.#handle
    const destroy: ReleaseCall = {
      make: () => cuDestroyExternalMemory(handle),
      check: (status) => checkRelease(status, 'cuDestroyExternalMemory'),
    }
    context._releases.add('An ExternalMemory', [destroy], () => context._removeChild())
  }

  /** The object itself was disposed of. */
  end(): void {
    this.endUse()
  }
}
