/**
 * Contexts beside the primary ones, and parts of a device: what `@shoal/driver/context` and `@shoal/runtime/context`
 * offer. An entry of its own, as few programs need it.
 */
export {
  CreatedContext,
  type CreatedContextOptions,
  currentContext,
  popContext,
  pushContext,
} from './core/context/createdContext.js'
export { DeviceResource, type SplitOptions, type SplitResource } from './work/green/deviceResource.js'
export { GreenContext, type GreenStreamOptions } from './work/green/greenContext.js'
