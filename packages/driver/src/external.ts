/**
 * Memory and semaphores of other libraries: what `@shoal/driver/external` and `@shoal/runtime/external` offer. An entry
 * of its own, as few programs need it.
 */
export { DmaBuf, type DmaBufOptions } from './work/external/dmaBuf.js'
export {
  type ExternalMapOptions,
  ExternalMemory,
  type ExternalMemoryDescription,
} from './work/external/externalMemory.js'
export {
  ExternalSemaphore,
  type ExternalSemaphoreDescription,
  signalSemaphores,
  waitSemaphores,
} from './work/external/externalSemaphore.js'
export type { SemaphoreOperation } from './work/external/semaphoreOperations.js'
