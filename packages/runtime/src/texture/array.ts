import {
  type ArrayOptions,
  CudaArray as BaseArray,
  MipmappedArray as BaseMipmapped,
  type MipmappedArrayOptions,
} from '@shoal/driver/texture'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/**
 * Texels in one, two or three dimensions, optionally layered, for textures and surfaces.
 *
 * @example
 * using array = CudaArray.create({ width: 640, height: 480, format: 'u8', channels: 4 })
 * array.copyFrom(pixels, { stream })
 */
export type CudaArray = BaseArray
export const CudaArray = withFactories(BaseArray, {
  /** Creates an array on the current or the given device (`cuArray3DCreate`). */
  create(options: ArrayOptions & DeviceOption): CudaArray {
    const [owner, rest] = ownerAndRest(options, 'CudaArray.create')
    return BaseArray.create(owner, rest)
  },
})

/** An array in several sizes; each size is half of the previous size in every dimension. */
export type MipmappedArray = BaseMipmapped
export const MipmappedArray = withFactories(BaseMipmapped, {
  /** Creates a mipmapped array on the current or the given device (`cuMipmappedArrayCreate`). */
  create(options: MipmappedArrayOptions & DeviceOption): MipmappedArray {
    const [owner, rest] = ownerAndRest(options, 'MipmappedArray.create')
    return BaseMipmapped.create(owner, rest)
  },

  /** Maps a mipmapped array in memory of another library (`cuExternalMemoryGetMappedMipmappedArray`). */
  fromExternal: BaseMipmapped.fromExternal,
})
