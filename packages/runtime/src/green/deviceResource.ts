import { DeviceResource as BaseResource } from '@shoal/driver/context'
import type { DeviceLike } from '@shoal/types'
import { deviceOrCurrent } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Some or all multiprocessors of a device, on which a green context runs its kernels. */
export type DeviceResource = BaseResource
export const DeviceResource = withFactories(BaseResource, {
  /**
   * Returns all multiprocessors of a device (`cuDeviceGetDevResource`).
   *
   * @param device Default: the current device.
   */
  of(device?: DeviceLike | number): DeviceResource {
    return BaseResource.of(deviceOrCurrent(device, 'DeviceResource.of'))
  },
})
