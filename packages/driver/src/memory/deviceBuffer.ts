export { DeviceBuffer } from '@shoal/cuda-base'
