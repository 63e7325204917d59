import { IpcMemory as BaseMemory, type IpcMemoryHandle } from '@shoal/driver/shared'
import type { DType } from '@shoal/types'
import { type DeviceOption, onlyOwner } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Memory of another process, opened by its handle. `dispose()` closes it; its buffer cannot be used afterwards. */
export type IpcMemory<D extends DType = DType> = BaseMemory<D>
export const IpcMemory = withFactories(BaseMemory, {
  /**
   * Opens memory of another process on the current device, or on the one named (`cudaIpcOpenMemHandle`).
   * @throws TypeError, RangeError for what is no such handle, longer than the memory behind it, or of another device;
   * FeatureNotSupportedError for a device that this process does not see; StatusError, also for a handle of this
   * process.
   */
  open<D extends DType>(handle: IpcMemoryHandle<D>, options: DeviceOption = {}): IpcMemory<D> {
    return BaseMemory.open(onlyOwner(options, 'IpcMemory.open'), handle)
  },
})
