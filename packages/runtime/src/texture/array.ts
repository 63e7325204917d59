import {
  type ArrayOptions,
  CudaArray as BaseArray,
  MipmappedArray as BaseMipmapped,
  type MipmappedArrayOptions,
} from '@shoal/driver/texture'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Texels of one, two or three dimensions, perhaps in layers, which textures and surfaces look into. */
export type CudaArray = BaseArray
export const CudaArray = withFactories(BaseArray, {
  /** An array on the current device, or the one named (`cuArray3DCreate`). */
  create(options: ArrayOptions & DeviceOption): CudaArray {
    const [owner, rest] = ownerAndRest(options, 'CudaArray.create')
    return BaseArray.create(owner, rest)
  },
})

/** An array in several sizes, each half of the one before in every dimension. */
export type MipmappedArray = BaseMipmapped
export const MipmappedArray = withFactories(BaseMipmapped, {
  /** A mipmapped array on the current device, or the one named (`cuMipmappedArrayCreate`). */
  create(options: MipmappedArrayOptions & DeviceOption): MipmappedArray {
    const [owner, rest] = ownerAndRest(options, 'MipmappedArray.create')
    return BaseMipmapped.create(owner, rest)
  },

  /** One in memory that another library made (`cuExternalMemoryGetMappedMipmappedArray`). */
  fromExternal: BaseMipmapped.fromExternal,
})
