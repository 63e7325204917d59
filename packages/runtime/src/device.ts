import { DeviceObject, type ResetCall, requireInteger, requireName, Status, scratch, uuidOf } from '@shoal/cuda-base'
import { type CUdevice, cuDeviceGet, driver } from '@shoal/cuda-sys/driver'
import {
  cudaDeviceCanAccessPeer,
  cudaDeviceDisablePeerAccess,
  cudaDeviceEnablePeerAccess,
  cudaDeviceGetAttribute,
  cudaDeviceGetByPCIBusId,
  cudaDeviceGetLimit,
  cudaDeviceGetP2PAttribute,
  cudaDeviceGetPCIBusId,
  cudaDeviceGetStreamPriorityRange,
  cudaDeviceReset,
  cudaDeviceSetLimit,
  cudaDeviceSynchronize,
  cudaGetDeviceCount,
  cudaMemGetInfo,
} from '@shoal/cuda-sys/runtime'
import { offThread } from '@shoal/ffi'
import { type DeviceLike, describeValue, toDeviceOrdinal } from '@shoal/types'
import {
  type DeviceAttribute,
  type DeviceLimit,
  deviceAttributeCode,
  limitCode,
  type PeerAttribute,
  peerAttributeCode,
} from './deviceAttributes.js'
import { type DeviceProperties, deviceProperties } from './deviceProperties.js'
import { check, runtimeErrors } from './errors.js'
import { callOn, initialize } from './start.js'

const devices = new Map<number, Device>()

/** A device as the runtime knows it. There is one object a device and JavaScript thread; it costs nothing until it is used. */
export class Device extends DeviceObject {
  private constructor(ordinal: number, handle: CUdevice) {
    super(ordinal, handle)
  }

  /**
   * How many devices there are; 0 where there is a driver and no device (`cudaGetDeviceCount`).
   * @throws LibraryNotFoundError when there is no driver or no runtime.
   */
  static get count(): number {
    const out = scratch()
    const status: number = cudaGetDeviceCount(out)
    if (status === Status.noDevice) return 0
    check(status, 'cudaGetDeviceCount')
    return out.i32[0] as number
  }

  /** The device with this ordinal. @throws RangeError when there is none. */
  static get(ordinal: number): Device {
    const known = devices.get(ordinal)
    if (known !== undefined) return known
    const count = Device.count
    if (count === 0) throw new RangeError(`no device ${describeValue(ordinal)}: there is no CUDA device`)
    requireInteger(ordinal, 'device ordinal', 0, count - 1)
    initialize()
    const out = scratch()
    check(cuDeviceGet(out, ordinal), 'cuDeviceGet')
    const device = new Device(ordinal, out.i32[0] as CUdevice)
    devices.set(ordinal, device)
    return device
  }

  /** The runtime's object for a device of any package, or for an ordinal. */
  static from(device: DeviceLike | number): Device {
    return device instanceof Device ? device : Device.get(toDeviceOrdinal(device))
  }

  /** All devices, by ordinal. */
  static all(): readonly Device[] {
    return Array.from({ length: Device.count }, (_, ordinal) => Device.get(ordinal))
  }

  /** The device at a PCI bus id such as `'0000:65:00.0'` (`cudaDeviceGetByPCIBusId`). */
  static getByPciBusId(pciBusId: string): Device {
    requireName(pciBusId, 'pciBusId')
    initialize()
    const out = scratch()
    check(cudaDeviceGetByPCIBusId(out, pciBusId), 'cudaDeviceGetByPCIBusId')
    return Device.get(out.i32[0] as number)
  }

  /** Every property of the device, read anew (`cudaGetDeviceProperties`). */
  get properties(): DeviceProperties {
    return deviceProperties(this.ordinal)
  }

  /** The device's name, such as `'NVIDIA H200'`. */
  get name(): string {
    return this.properties.name
  }

  /** The UUID as `nvidia-smi` writes it, `'GPU-…'`. */
  get uuid(): string {
    return uuidOf(this.handle)
  }

  /** The PCI bus id, such as `'0000:65:00.0'` (`cudaDeviceGetPCIBusId`). */
  get pciBusId(): string {
    const out = scratch()
    check(cudaDeviceGetPCIBusId(out, 64, this.ordinal), 'cudaDeviceGetPCIBusId')
    const bytes = new Uint8Array(out.buffer, 0, 64)
    const end = bytes.indexOf(0)
    return new TextDecoder().decode(bytes.slice(0, end < 0 ? bytes.length : end))
  }

  /** Whether this is the software device of `@shoal/sim` and not a GPU. */
  get isSoftware(): boolean {
    // A function only the software device has: what is loaded counts, not what the environment says.
    return driver.rawSymbol('shoalSimDescribe') !== undefined
  }

  /** One attribute by name; yes and no are 1 and 0 (`cudaDeviceGetAttribute`). */
  attribute(attribute: DeviceAttribute): number {
    const code = deviceAttributeCode(attribute)
    const out = scratch()
    check(cudaDeviceGetAttribute(out, code, this.ordinal), 'cudaDeviceGetAttribute')
    return out.i32[0] as number
  }

  /** Reads a limit, in its own unit, mostly bytes (`cudaDeviceGetLimit`). */
  getLimit(limit: DeviceLimit): number {
    const code = limitCode(limit)
    const out = scratch()
    callOn(this.primaryContext, 'cudaDeviceGetLimit', () => cudaDeviceGetLimit(out, code))
    return Number(out.u64[0])
  }

  /** Asks for a limit; the driver may round it (`cudaDeviceSetLimit`). */
  setLimit(limit: DeviceLimit, value: number): void {
    const code = limitCode(limit)
    requireInteger(value, 'value', 0, Number.MAX_SAFE_INTEGER)
    callOn(this.primaryContext, 'cudaDeviceSetLimit', () => cudaDeviceSetLimit(code, value))
  }

  /** The priorities streams may have; a lower number is a greater priority (`cudaDeviceGetStreamPriorityRange`). */
  get streamPriorityRange(): { readonly least: number; readonly greatest: number } {
    const out = scratch()
    callOn(this.primaryContext, 'cudaDeviceGetStreamPriorityRange', () =>
      cudaDeviceGetStreamPriorityRange(out.address, out.address + 4n),
    )
    return { least: out.i32[0] as number, greatest: out.i32[1] as number }
  }

  /** Bytes free now and in all (`cudaMemGetInfo`). */
  memoryInfo(): { readonly free: number; readonly total: number } {
    const out = scratch()
    callOn(this.primaryContext, 'cudaMemGetInfo', () => cudaMemGetInfo(out.address, out.address + 8n))
    return { free: Number(out.u64[0]), total: Number(out.u64[1]) }
  }

  /** Whether kernels of this device can use memory of `peer` directly (`cudaDeviceCanAccessPeer`). */
  canAccessPeer(peer: DeviceLike | number): boolean {
    const { ordinal } = Device.from(peer)
    const out = scratch()
    check(cudaDeviceCanAccessPeer(out, this.ordinal, ordinal), 'cudaDeviceCanAccessPeer')
    return out.i32[0] !== 0
  }

  /** A property of the link from this device to `peer` (`cudaDeviceGetP2PAttribute`). */
  peerAttribute(attribute: PeerAttribute, peer: DeviceLike | number): number {
    const code = peerAttributeCode(attribute)
    const { ordinal } = Device.from(peer)
    const out = scratch()
    check(cudaDeviceGetP2PAttribute(out, code, this.ordinal, ordinal), 'cudaDeviceGetP2PAttribute')
    return out.i32[0] as number
  }

  /**
   * Lets work of this device use memory of `peer` directly, in one direction (`cudaDeviceEnablePeerAccess`). Enabling
   * twice is no error. @throws StatusError when the two devices cannot.
   */
  enablePeerAccess(peer: DeviceLike | number): void {
    const { ordinal } = this.#peer(peer)
    const context = this.primaryContext
    context._call('cudaDeviceEnablePeerAccess', () => cudaDeviceEnablePeerAccess(ordinal, 0), {
      ...runtimeErrors,
      check(status, api) {
        if (status !== Status.peerAccessAlreadyEnabled) check(status, api)
      },
    })
    context._peers.add(ordinal)
  }

  /** Ends what {@link enablePeerAccess} began; without it, does nothing (`cudaDeviceDisablePeerAccess`). */
  disablePeerAccess(peer: DeviceLike | number): void {
    const { ordinal } = this.#peer(peer)
    const context = this.primaryContext
    context._call('cudaDeviceDisablePeerAccess', () => cudaDeviceDisablePeerAccess(ordinal), {
      ...runtimeErrors,
      check(status, api) {
        if (status !== Status.peerAccessNotEnabled) check(status, api)
      },
    })
    context._peers.delete(ordinal)
  }

  /** Blocks until all work of the device has ended (`cudaDeviceSynchronize`). */
  synchronizeSync(): void {
    callOn(this.primaryContext, 'cudaDeviceSynchronize', () => cudaDeviceSynchronize())
  }

  /** Resolves when all work of the device has ended (`cudaDeviceSynchronize`, on a native thread). */
  async synchronize(): Promise<this> {
    const context = this.primaryContext
    const { handle } = context
    context._addWait()
    try {
      const [status = Status.success] = await offThread({ context: handle }, () => cudaDeviceSynchronize())
      check(status, 'cudaDeviceSynchronize')
    } finally {
      context._endWait()
    }
    return this
  }

  get [Symbol.toStringTag](): string {
    return 'Device'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Device ${this.ordinal} (${this.name})`
  }

  protected resetCall(): ResetCall {
    return {
      api: 'cudaDeviceReset',
      errors: runtimeErrors,
      needsContext: true,
      call: () => cudaDeviceReset(),
    }
  }

  #peer(peer: DeviceLike | number): Device {
    const device = Device.from(peer)
    if (device.ordinal === this.ordinal) throw new RangeError('a device is no peer of itself')
    return device
  }
}
