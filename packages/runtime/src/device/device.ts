import type { CUdevice } from '@shoal/cuda-sys/driver'
import { cudaDeviceAttr, cudaDeviceP2PAttr, cudaLimit } from '@shoal/cuda-sys/runtime'
import {
  Device as BaseDevice,
  type ContextLimit,
  type CudaLibrary,
  DeviceList,
  type DeviceAttribute as DriverAttribute,
  type PeerAttribute as DriverPeerAttribute,
} from '@shoal/driver/shared'
import { type DeviceLike, isInstance, toDeviceOrdinal } from '@shoal/types'
import { runtimeLibrary } from '../calls/runtimeLibrary.js'
import { type DeviceProperties, deviceProperties } from './deviceProperties.js'

type WithoutPrefix<Name, Prefix extends string> = Name extends `${Prefix}${infer Rest}` ? Rest : never

/** The attributes of a device: `cudaDeviceAttr` without its prefix, such as `'MultiProcessorCount'`. */
export type DeviceAttribute = Exclude<WithoutPrefix<keyof typeof cudaDeviceAttr, 'cudaDevAttr'>, 'Max'>

/** What links two devices: `cudaDeviceP2PAttr` without its prefix. */
export type PeerAttribute = WithoutPrefix<keyof typeof cudaDeviceP2PAttr, 'cudaDevP2PAttr'>

/** The limits of a device: `cudaLimit` without its prefix, such as `'StackSize'`. */
export type DeviceLimit = WithoutPrefix<keyof typeof cudaLimit, 'cudaLimit'>

/** Every attribute by name, in the order of the C header; names that share a code are all there. */
export function deviceAttributeNames(): readonly DeviceAttribute[] {
  return Object.keys(cudaDeviceAttr)
    .filter((name) => name !== 'cudaDevAttrMax')
    .map((name) => name.slice('cudaDevAttr'.length) as DeviceAttribute)
}

/**
 * A device as the runtime knows it: attributes and limits have the names of libcudart, those of libcuda are taken, too.
 * There is one object a device and JavaScript thread; it costs nothing until it is used.
 *
 * @example
 * for (const device of Device.all()) console.log(device.name, device.attribute('MultiProcessorCount'))
 */
export class Device extends BaseDevice {
  static #list: DeviceList<Device> | undefined

  static get #devices(): DeviceList<Device> {
    Device.#list ??= new DeviceList(runtimeLibrary, (ordinal, handle) => new Device(ordinal, handle, runtimeLibrary))
    return Device.#list
  }

  private constructor(ordinal: number, handle: CUdevice, cuda: CudaLibrary) {
    super(ordinal, handle, cuda)
  }

  static override get count(): number {
    return Device.#devices.count
  }

  static override get(ordinal: number): Device {
    return Device.#devices.get(ordinal)
  }

  static override from(device: DeviceLike | number): Device {
    return Device._find(device, 'Device.from', 'device')
  }

  /** @internal */
  static override _find(device: DeviceLike | number, api: string, name: string): Device {
    if (isInstance(device, Device)) return device
    return Device.#devices.get(toDeviceOrdinal(device, api, name), api, name)
  }

  static override all(): readonly Device[] {
    return Device.#devices.all()
  }

  static override getByPciBusId(pciBusId: string): Device {
    return Device.#devices.getByPciBusId(pciBusId)
  }

  /** Every property of the device, read anew (`cudaGetDeviceProperties`). */
  get properties(): DeviceProperties {
    return deviceProperties(this.ordinal)
  }

  /** One attribute by its name in either library; yes and no are 1 and 0 (`cudaDeviceGetAttribute`). */
  override attribute(attribute: DeviceAttribute | DriverAttribute): number {
    const code = codeOf(cudaDeviceAttr, 'cudaDevAttr', attribute)
    return code === undefined ? super.attribute(attribute as DriverAttribute) : this._attribute(code)
  }

  /** A property of the link from this device to `peer`, by its name in either library (`cudaDeviceGetP2PAttribute`). */
  override peerAttribute(attribute: PeerAttribute | DriverPeerAttribute, peer: DeviceLike | number): number {
    const code = codeOf(cudaDeviceP2PAttr, 'cudaDevP2PAttr', attribute)
    if (code === undefined) return super.peerAttribute(attribute as DriverPeerAttribute, peer)
    return this._peerAttribute(code, peer)
  }

  /** Reads a limit by its name in either library, in its own unit, mostly bytes (`cudaDeviceGetLimit`). */
  override getLimit(limit: DeviceLimit | ContextLimit): number {
    const code = codeOf(cudaLimit, 'cudaLimit', limit)
    return code === undefined ? super.getLimit(limit as ContextLimit) : this.primaryContext._getLimit(code)
  }

  /** Asks for a limit by its name in either library; the driver may round it (`cudaDeviceSetLimit`). */
  override setLimit(limit: DeviceLimit | ContextLimit, value: number): void {
    const code = codeOf(cudaLimit, 'cudaLimit', limit)
    if (code === undefined) super.setLimit(limit as ContextLimit, value)
    else this.primaryContext._setLimit(code, value, 'Device.setLimit')
  }

  override _resolve(device: DeviceLike | number, api: string, name: string): Device {
    return Device._find(device, api, name)
  }
}

/** The code of a name of libcudart; undefined for any other. */
function codeOf(codes: Readonly<Record<string, number>>, prefix: string, name: unknown): number | undefined {
  const key = typeof name === 'string' && name !== 'Max' ? prefix + name : ''
  return Object.hasOwn(codes, key) ? codes[key] : undefined
}
