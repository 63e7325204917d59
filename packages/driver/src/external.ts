/**
 * Memory and semaphores of other libraries: the entries `@shoal/driver/external` and `@shoal/runtime/external`. A
 * separate entry, because few programs need it.
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
