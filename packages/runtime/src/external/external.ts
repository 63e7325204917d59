import {
  ExternalMemory as BaseMemory,
  ExternalSemaphore as BaseSemaphore,
  type ExternalMemoryDescription,
  type ExternalSemaphoreDescription,
} from '@shoal/driver/external'
import { type DeviceOption, onlyOwner } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Memory of another library, such as Vulkan, imported for a device. The import calls libcuda, as libcudart would. */
export type ExternalMemory = BaseMemory
export const ExternalMemory = withFactories(BaseMemory, {
  /** Imports exported memory for the current or the given device (`cuImportExternalMemory`). */
  import(description: ExternalMemoryDescription, options: DeviceOption = {}): ExternalMemory {
    return BaseMemory.import(onlyOwner(options, 'ExternalMemory.import'), description)
  },
})

/** A semaphore of another library, such as Vulkan, that streams signal and wait for. */
export type ExternalSemaphore = BaseSemaphore
export const ExternalSemaphore = withFactories(BaseSemaphore, {
  /** Imports an exported semaphore for the current or the given device (`cuImportExternalSemaphore`). */
  import(description: ExternalSemaphoreDescription, options: DeviceOption = {}): ExternalSemaphore {
    return BaseSemaphore.import(onlyOwner(options, 'ExternalSemaphore.import'), description)
  },
})
