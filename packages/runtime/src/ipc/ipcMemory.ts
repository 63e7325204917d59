import { IpcMemory as BaseMemory, type IpcMemoryHandle } from '@shoal/driver/shared'
import type { DType } from '@shoal/types'
import { type DeviceOption, onlyOwner } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/**
 * Memory of another process, opened by its handle. `dispose()` closes the memory, and `buffer` can then not be used.
 */
export type IpcMemory<D extends DType = DType> = BaseMemory<D>
export const IpcMemory = withFactories(BaseMemory, {
  /**
   * Opens memory of another process on the current or the given device (`cudaIpcOpenMemHandle`).
   *
   * @throws TypeError, RangeError for an invalid handle, for a handle that exceeds its memory, and for a handle of
   * another device; FeatureNotSupportedError for a device that this process cannot see; StatusError, also for a handle
   * of this process.
   */
  open<D extends DType>(handle: IpcMemoryHandle<D>, options: DeviceOption = {}): IpcMemory<D> {
    return BaseMemory.open(onlyOwner(options, 'IpcMemory.open'), handle)
  },
})
