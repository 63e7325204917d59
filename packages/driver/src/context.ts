/**
 * Additional contexts and parts of a device: the entries `@shoal/driver/context` and `@shoal/runtime/context`. A
 * separate entry, because few programs need it.
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
