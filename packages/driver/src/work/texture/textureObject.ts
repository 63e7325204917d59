import {
  CUDA_RESOURCE_DESC,
  type CUtexObject,
  cuTexObjectCreate,
  cuTexObjectDestroy,
  cuTexObjectGetResourceDesc,
  cuTexObjectGetResourceViewDesc,
  cuTexObjectGetTextureDesc,
} from '@shoal/cuda-sys/driver'
import { requireMade, requireOptions } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import type { Destroyer } from '../../core/context/contextObject.js'
import { scratch } from '../../core/native.js'
import type { TexelFormat } from './arrayFormat.js'
import { LookingObject } from './lookingObject.js'
import {
  readTexture,
  type TextureDescription,
  type TextureOptions,
  textureDescriptor,
  textureKeys,
} from './textureOptions.js'
import {
  type CheckedResource,
  type ResourceDescription,
  readResource,
  requireResource,
  type TextureResource,
} from './textureResource.js'
import { readView, type ViewDescription, viewDescriptor } from './textureView.js'

const destroyer: Destroyer = { api: 'cuTexObjectDestroy', call: (handle) => cuTexObjectDestroy(handle as CUtexObject) }

/**
 * Lets kernels read an array or memory by coordinates, with filtering and rules at the border (`cuTexObjectCreate`).
 *
 * Pass a texture as a kernel argument of type `'texture'`. It keeps the array or memory alive, but cannot be used after
 * the array or memory was disposed of.
 *
 * @example
 * const view = { addressMode: 'wrap', filterMode: 'linear', normalizedCoordinates: true } as const
 * using texture = TextureObject.create(array, view)
 * const kernel = module.kernel('rotate', ['texture', 'ptr', 'f32'])
 * kernel.launch({ grid: [40, 30], block: [16, 16] }, texture, out, 0.5)
 */
export class TextureObject extends LookingObject<'texture'> {
  protected readonly kind = 'TextureObject'
  readonly #texel: TexelFormat
  readonly #hasView: boolean

  private constructor(context: Context, handle: bigint, resource: CheckedResource, hasView: boolean) {
    requireMade(handle, 'TextureObject', 'TextureObject.create')
    super('texture', context, handle, resource, destroyer)
    this.#texel = resource.texel
    this.#hasView = hasView
  }

  /**
   * Creates a texture of an array, a mipmapped array, or device memory. Memory is a `DeviceBuffer` (`DeviceBuffer.view`
   * wraps other memory) and must start at a multiple of the device's `TEXTURE_ALIGNMENT`, as every separate allocation
   * does.
   * @throws TypeError, RangeError, DisposedError; StatusError for options that the device does not support
   */
  static create(resource: TextureResource, options: TextureOptions = {}): TextureObject {
    const api = 'TextureObject.create'
    const checked = requireResource(resource, api)
    const { context, texel, type, object, dimensions } = checked
    const given = { ...requireOptions(options, api, textureKeys) }
    const texture = textureDescriptor(given, texel, type, dimensions, api)
    const view = given.view === undefined ? null : viewDescriptor(given.view, object, api)
    const descriptor = CUDA_RESOURCE_DESC.allocate(checked.descriptor)
    const out = scratch()
    // Getters of the options may have disposed of the resource.
    checked.requireThere()
    context._callDriver('cuTexObjectCreate', () => cuTexObjectCreate(out, descriptor, texture, view))
    return new TextureObject(context, out.u64[0] as bigint, checked, view !== null)
  }

  /** The `CUtexObject`, which is also a `cudaTextureObject_t`. @throws DisposedError */
  get handle(): CUtexObject {
    return this._use() as CUtexObject
  }

  /**
   * Returns the driver's description of the options (`cuTexObjectGetTextureDesc`). @throws DisposedError, StatusError
   */
  describe(): TextureDescription {
    const { handle } = this
    const out = scratch()
    this.context._callDriver('cuTexObjectGetTextureDesc', () => cuTexObjectGetTextureDesc(out, handle))
    return readTexture(out, this.#texel)
  }

  /**
   * Returns the driver's description of the array or memory (`cuTexObjectGetResourceDesc`). @throws DisposedError,
   * StatusError
   */
  describeResource(): ResourceDescription {
    const { handle } = this
    return readResource((out) =>
      this.context._callDriver('cuTexObjectGetResourceDesc', () => cuTexObjectGetResourceDesc(out, handle)),
    )
  }

  /**
   * Returns the driver's description of the view; undefined without one (`cuTexObjectGetResourceViewDesc`). @throws
   * DisposedError, StatusError
   */
  describeView(): ViewDescription | undefined {
    const { handle } = this
    if (!this.#hasView) return undefined
    const out = scratch()
    this.context._callDriver('cuTexObjectGetResourceViewDesc', () => cuTexObjectGetResourceViewDesc(out, handle))
    return readView(out)
  }
}
