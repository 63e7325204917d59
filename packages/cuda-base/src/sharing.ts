/**
 * Memory that threads and processes use together: what `@shoal/driver/sharing` and `@shoal/runtime/sharing` offer. An entry of its own, as
 * few programs need it.
 */
export type { SharingWay } from './sharing/description.js'
export {
  type ProcessChannel,
  receive,
  type Sharing,
  type SharingChannel,
  share,
  type ThreadChannel,
} from './sharing/overChannel.js'
export { receiveMemory, type ShareOptions, sendMemory } from './sharing/overSocket.js'
export { SharedMemory } from './sharing/sharedMemory.js'
