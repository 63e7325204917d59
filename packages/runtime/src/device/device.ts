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

/** Name of a device attribute: `cudaDeviceAttr` without its prefix, such as `'MultiProcessorCount'`. */
export type DeviceAttribute = Exclude<WithoutPrefix<keyof typeof cudaDeviceAttr, 'cudaDevAttr'>, 'Max'>

/** Name of an attribute of a link between devices: `cudaDeviceP2PAttr` without its prefix. */
export type PeerAttribute = WithoutPrefix<keyof typeof cudaDeviceP2PAttr, 'cudaDevP2PAttr'>

/** Name of a device limit: `cudaLimit` without its prefix, such as `'StackSize'`. */
export type DeviceLimit = WithoutPrefix<keyof typeof cudaLimit, 'cudaLimit'>

/**
 * Returns every attribute name, in the order of the C header.
 *
 * Names that share a code are all included.
 */
export function deviceAttributeNames(): readonly DeviceAttribute[] {
  return Object.keys(cudaDeviceAttr)
    .filter((name) => name !== 'cudaDevAttrMax')
    .map((name) => name.slice('cudaDevAttr'.length) as DeviceAttribute)
}

/**
 * A device of the CUDA runtime.
 *
 * Attributes and limits have the names of libcudart; names of libcuda are accepted too. Each JavaScript thread has one
 * object per device. The object uses no resources before its first use.
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

  /** Every property of the device, read at each access (`cudaGetDeviceProperties`). */
  get properties(): DeviceProperties {
    return deviceProperties(this.ordinal)
  }

  /** Returns an attribute by its name in either library; booleans are 1 and 0 (`cudaDeviceGetAttribute`). */
  override attribute(attribute: DeviceAttribute | DriverAttribute): number {
    const code = codeOf(cudaDeviceAttr, 'cudaDevAttr', attribute)
    return code === undefined ? super.attribute(attribute as DriverAttribute) : this._attribute(code)
  }

  /**
   * Returns an attribute of the link from this device to `peer`, by its name in either library
   * (`cudaDeviceGetP2PAttribute`).
   */
  override peerAttribute(attribute: PeerAttribute | DriverPeerAttribute, peer: DeviceLike | number): number {
    const code = codeOf(cudaDeviceP2PAttr, 'cudaDevP2PAttr', attribute)
    if (code === undefined) return super.peerAttribute(attribute as DriverPeerAttribute, peer)
    return this._peerAttribute(code, peer)
  }

  /**
   * Returns a limit by its name in either library (`cudaDeviceGetLimit`).
   *
   * Most limits are in bytes.
   */
  override getLimit(limit: DeviceLimit | ContextLimit): number {
    const code = codeOf(cudaLimit, 'cudaLimit', limit)
    return code === undefined ? super.getLimit(limit as ContextLimit) : this.primaryContext._getLimit(code)
  }

  /** Sets a limit by its name in either library; the driver may round it (`cudaDeviceSetLimit`). */
  override setLimit(limit: DeviceLimit | ContextLimit, value: number): void {
    const code = codeOf(cudaLimit, 'cudaLimit', limit)
    if (code === undefined) super.setLimit(limit as ContextLimit, value)
    else this.primaryContext._setLimit(code, value, 'Device.setLimit')
  }

  override _resolve(device: DeviceLike | number, api: string, name: string): Device {
    return Device._find(device, api, name)
  }
}

/** Returns the code of a libcudart name; undefined for other names. */
function codeOf(codes: Readonly<Record<string, number>>, prefix: string, name: unknown): number | undefined {
  const key = typeof name === 'string' && name !== 'Max' ? prefix + name : ''
  return Object.hasOwn(codes, key) ? codes[key] : undefined
}
