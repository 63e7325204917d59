/** Parts of a device, with streams of their own. */
export { GreenContext, type GreenStreamOptions, type SplitOptions, type SplitResource } from '@shoal/driver/context'
export { DeviceResource } from './green/deviceResource.js'
