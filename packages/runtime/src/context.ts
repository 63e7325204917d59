/** Parts of a device, each with its own streams. */
export { GreenContext, type GreenStreamOptions, type SplitOptions, type SplitResource } from '@shoal/driver/context'
export { DeviceResource } from './green/deviceResource.js'
