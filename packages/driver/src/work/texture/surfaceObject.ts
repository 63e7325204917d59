import {
  CUDA_RESOURCE_DESC,
  type CUsurfObject,
  cuSurfObjectCreate,
  cuSurfObjectDestroy,
  cuSurfObjectGetResourceDesc,
} from '@shoal/cuda-sys/driver'
import { outOfRange, requireMade } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import type { Destroyer } from '../../core/context/contextObject.js'
import { scratch } from '../../core/native.js'
import { type CudaArray, requireCudaArray } from './cudaArray.js'
import { LookingObject } from './lookingObject.js'
import { type CheckedResource, type ResourceDescription, readResource, requireResource } from './textureResource.js'

const destroyer: Destroyer = {
  api: 'cuSurfObjectDestroy',
  call: (handle) => cuSurfObjectDestroy(handle as CUsurfObject),
}

/**
 * An array that kernels read and write by coordinates (`cuSurfObjectCreate`), as an argument of type `'surface'`. The
 * surface keeps the array alive, but cannot be used after the array was disposed of.
 *
 * @example
 * using array = CudaArray.create(device, { width: 64, height: 64, format: 'f32', surface: true })
 * using surface = SurfaceObject.create(array)
 * module.kernel('draw', ['surface', 'i32', 'i32']).launch({ grid: [4, 4], block: [16, 16] }, surface, 64, 64)
 */
export class SurfaceObject extends LookingObject<'surface'> {
  protected readonly kind = 'SurfaceObject'

  private constructor(context: Context, handle: bigint, resource: CheckedResource) {
    requireMade(handle, 'SurfaceObject', 'SurfaceObject.create')
    super('surface', context, handle, resource, destroyer)
  }

  /**
   * Creates a surface of an array with `surface: true`, or of a level of a mipmapped array.
   * @throws TypeError, RangeError, DisposedError, StatusError
   */
  static create(array: CudaArray): SurfaceObject {
    const api = 'SurfaceObject.create'
    requireCudaArray(array, api, 'array')
    if (!array.surface) throw outOfRange(api, 'array', 'one made with surface: true', array)
    const checked = requireResource(array, api)
    const descriptor = CUDA_RESOURCE_DESC.allocate(checked.descriptor)
    const out = scratch()
    checked.context._callDriver('cuSurfObjectCreate', () => cuSurfObjectCreate(out, descriptor))
    return new SurfaceObject(checked.context, out.u64[0] as bigint, checked)
  }

  /** The `CUsurfObject`, which is also a `cudaSurfaceObject_t`. @throws DisposedError */
  get handle(): CUsurfObject {
    return this._use() as CUsurfObject
  }

  /**
   * Returns the driver's description of the array (`cuSurfObjectGetResourceDesc`). @throws DisposedError, StatusError
   */
  describeResource(): ResourceDescription {
    const { handle } = this
    return readResource((out) =>
      this.context._callDriver('cuSurfObjectGetResourceDesc', () => cuSurfObjectGetResourceDesc(out, handle)),
    )
  }
}
