import { DeviceResource as BaseResource } from '@shoal/driver/context'
import type { DeviceLike } from '@shoal/types'
import { deviceOrCurrent } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Multiprocessors of a device, all or a part of them. A green context has such a part for its kernels. */
export type DeviceResource = BaseResource
export const DeviceResource = withFactories(BaseResource, {
  /** All multiprocessors of a device (`cuDeviceGetDevResource`). @param device Default: the current one. */
  of(device?: DeviceLike | number): DeviceResource {
    return BaseResource.of(deviceOrCurrent(device, 'DeviceResource.of'))
  },
})
