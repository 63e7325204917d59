/**
 * Memory shared by threads and processes: the entries `@shoal/driver/sharing` and `@shoal/runtime/sharing`. A separate
 * entry, because few programs need it.
 */
export type { SharingWay } from './memory/sharing/description.js'
export {
  type ProcessChannel,
  receive,
  type Sharing,
  type SharingChannel,
  share,
  type ThreadChannel,
} from './memory/sharing/overChannel.js'
export { receiveMemory, type ShareOptions, sendMemory } from './memory/sharing/overSocket.js'
export { SharedMemory } from './memory/sharing/sharedMemory.js'
