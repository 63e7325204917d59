export { Context, contextOf, type DeviceOrContext as ContextSource } from '@shoal/cuda-base'
