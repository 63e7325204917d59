/** Memory and semaphores of other libraries, such as Vulkan. */
export {
  DmaBuf,
  type DmaBufOptions,
  type ExternalMapOptions,
  type ExternalMemoryDescription,
  type ExternalSemaphoreDescription,
  type SemaphoreOperation,
  signalSemaphores,
  waitSemaphores,
} from '@shoal/driver/external'
export { ExternalMemory, ExternalSemaphore } from './external/external.js'
