import {
  type AllocationOptions,
  allocationGranularity,
  check,
  DeviceObject,
  driverErrors,
  type Granularity,
  PhysicalMemory,
  type ResetCall,
  requireInteger,
  requireName,
  Status,
  scratch,
  uuidOf,
} from '@shoal/cuda-base'
import {
  type CUdevice,
  CUdevice_P2PAttribute,
  cuDeviceCanAccessPeer,
  cuDeviceGet,
  cuDeviceGetAttribute,
  cuDeviceGetByPCIBusId,
  cuDeviceGetCount,
  cuDeviceGetLuid,
  cuDeviceGetName,
  cuDeviceGetP2PAttribute,
  cuDeviceGetPCIBusId,
  cuDevicePrimaryCtxGetState,
  cuDevicePrimaryCtxReset,
  cuDeviceTotalMem,
  cuInit,
  cuMemGetInfo,
  driver,
} from '@shoal/cuda-sys/driver'
import { type DType, describeValue } from '@shoal/types'
import type { Context } from './context.js'
import { type DeviceAttribute, deviceAttributeCode } from './deviceAttributes.js'
import { Event, type EventOptions } from './event.js'
import { initialize } from './init.js'
import { GrowableBuffer, type GrowableBufferOptions } from './memory/growableBuffer.js'
import { MemoryPool, type MemoryPoolOptions } from './memory/memoryPool.js'
import { Stream, type StreamOptions } from './stream.js'

/** What links two devices: `CUdevice_P2PAttribute` without its prefix. */
export type PeerAttribute =
  | 'PERFORMANCE_RANK'
  | 'ACCESS_SUPPORTED'
  | 'NATIVE_ATOMIC_SUPPORTED'
  | 'CUDA_ARRAY_ACCESS_SUPPORTED'
  | 'ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED'

const devices = new Map<number, Device>()
let isSoftware: boolean | undefined

/** A CUDA device. There is one object a device and JavaScript thread; it costs nothing until it is used. */
export class Device extends DeviceObject {
  #defaultStream: Stream | undefined
  #computeCapability: { readonly major: number; readonly minor: number } | undefined

  private constructor(ordinal: number, handle: CUdevice) {
    super(ordinal, handle)
  }

  /**
   * How many devices there are; 0 where there is a driver and no device (`cuDeviceGetCount`).
   * @throws LibraryNotFoundError when there is no driver.
   */
  static get count(): number {
    // Said by cuInit itself where there is a driver and no device.
    const started: number = cuInit(0)
    if (started === Status.noDevice) return 0
    initialize()
    const out = scratch()
    check(cuDeviceGetCount(out), 'cuDeviceGetCount')
    return out.i32[0] as number
  }

  /** The device with this ordinal. @throws RangeError when there is none. */
  static get(ordinal: number): Device {
    const known = devices.get(ordinal)
    if (known !== undefined) return known
    const count = Device.count
    if (count === 0) throw new RangeError(`no device ${describeValue(ordinal)}: there is no CUDA device`)
    requireInteger(ordinal, 'device ordinal', 0, count - 1)
    const out = scratch()
    check(cuDeviceGet(out, ordinal), 'cuDeviceGet')
    const device = new Device(ordinal, out.i32[0] as CUdevice)
    devices.set(ordinal, device)
    return device
  }

  /** All devices, by ordinal. */
  static all(): readonly Device[] {
    return Array.from({ length: Device.count }, (_, ordinal) => Device.get(ordinal))
  }

  /** The device at a PCI bus id such as `'0000:65:00.0'` (`cuDeviceGetByPCIBusId`). */
  static getByPciBusId(pciBusId: string): Device {
    requireName(pciBusId, 'pciBusId')
    initialize()
    const out = scratch()
    check(cuDeviceGetByPCIBusId(out, pciBusId), 'cuDeviceGetByPCIBusId')
    const handle = out.i32[0]
    const device = Device.all().find((candidate) => candidate.handle === handle)
    if (device === undefined) throw new RangeError(`the device at ${pciBusId} is not visible to this process`)
    return device
  }

  /** The device's name, such as `'NVIDIA H200'` (`cuDeviceGetName`). */
  get name(): string {
    const out = scratch()
    check(cuDeviceGetName(out, 256, this.handle), 'cuDeviceGetName')
    return textIn(new Uint8Array(out.buffer, 0, 256))
  }

  /** The UUID as `nvidia-smi` writes it, `'GPU-…'` (`cuDeviceGetUuid`). */
  get uuid(): string {
    return uuidOf(this.handle)
  }

  /**
   * The locally unique id and node mask by which Windows graphics interfaces know the device (`cuDeviceGetLuid`).
   * @throws StatusError where the platform has none.
   */
  get luid(): { readonly luid: Uint8Array; readonly nodeMask: number } {
    const out = scratch()
    check(cuDeviceGetLuid(out.address, out.address + 8n, this.handle), 'cuDeviceGetLuid')
    return { luid: new Uint8Array(out.buffer.slice(0, 8)), nodeMask: out.u32[2] as number }
  }

  /** Bytes of memory on the device (`cuDeviceTotalMem`). */
  get totalMemory(): number {
    const out = scratch()
    check(cuDeviceTotalMem(out, this.handle), 'cuDeviceTotalMem')
    return Number(out.u64[0])
  }

  /** The compute capability, such as `{ major: 9, minor: 0 }`. */
  get computeCapability(): { readonly major: number; readonly minor: number } {
    this.#computeCapability ??= {
      major: this.attribute('COMPUTE_CAPABILITY_MAJOR'),
      minor: this.attribute('COMPUTE_CAPABILITY_MINOR'),
    }
    return this.#computeCapability
  }

  /** The PCI bus id, such as `'0000:65:00.0'` (`cuDeviceGetPCIBusId`). */
  get pciBusId(): string {
    const out = scratch()
    check(cuDeviceGetPCIBusId(out, 64, this.handle), 'cuDeviceGetPCIBusId')
    return textIn(new Uint8Array(out.buffer, 0, 64))
  }

  /** Whether this is the software device of `@shoal/sim` and not a GPU. */
  get isSoftware(): boolean {
    initialize()
    // A function only the software device has: what is loaded counts, not what the environment says.
    isSoftware ??= driver.rawSymbol('shoalSimDescribe') !== undefined
    return isSoftware
  }

  /** One attribute by name; yes and no are 1 and 0 (`cuDeviceGetAttribute`). */
  attribute(attribute: DeviceAttribute): number {
    const code = deviceAttributeCode(attribute)
    const out = scratch()
    check(cuDeviceGetAttribute(out, code, this.handle), 'cuDeviceGetAttribute')
    return out.i32[0] as number
  }

  /** Whether kernels of this device can use memory of `peer` directly (`cuDeviceCanAccessPeer`). */
  canAccessPeer(peer: Device): boolean {
    requireDevice(peer, 'peer')
    const out = scratch()
    check(cuDeviceCanAccessPeer(out, this.handle, peer.handle), 'cuDeviceCanAccessPeer')
    return out.i32[0] !== 0
  }

  /** A property of the link from this device to `peer` (`cuDeviceGetP2PAttribute`). */
  peerAttribute(attribute: PeerAttribute, peer: Device): number {
    requireDevice(peer, 'peer')
    const name = `CU_DEVICE_P2P_ATTRIBUTE_${String(attribute)}`
    if (!Object.hasOwn(CUdevice_P2PAttribute, name)) {
      throw new TypeError(`unknown peer attribute ${describeValue(attribute)}`)
    }
    const code = CUdevice_P2PAttribute[name as keyof typeof CUdevice_P2PAttribute]
    const out = scratch()
    check(cuDeviceGetP2PAttribute(out, code, this.handle, peer.handle), 'cuDeviceGetP2PAttribute')
    return out.i32[0] as number
  }

  /** Lets work of this device use memory of `peer` directly, in one direction. See `Context.enablePeerAccess`. */
  enablePeerAccess(peer: Device): void {
    requireDevice(peer, 'peer')
    this.primaryContext.enablePeerAccess(peer)
  }

  /** Ends what {@link enablePeerAccess} began. */
  disablePeerAccess(peer: Device): void {
    requireDevice(peer, 'peer')
    this.primaryContext.disablePeerAccess(peer)
  }

  /** Bytes free now and in all, as seen from the primary context (`cuMemGetInfo`). */
  memoryInfo(): { readonly free: number; readonly total: number } {
    const out = scratch()
    this.primaryContext._call('cuMemGetInfo', () => cuMemGetInfo(out.address, out.address + 8n))
    return { free: Number(out.u64[0]), total: Number(out.u64[1]) }
  }

  /** Whether anybody in the process holds the primary context, and its flags (`cuDevicePrimaryCtxGetState`). */
  get primaryContextState(): { readonly active: boolean; readonly flags: number } {
    const out = scratch()
    check(cuDevicePrimaryCtxGetState(this.handle, out.address, out.address + 4n), 'cuDevicePrimaryCtxGetState')
    return { active: out.i32[1] !== 0, flags: out.u32[0] as number }
  }

  /**
   * The primary context, retained on first use (`cuDevicePrimaryCtxRetain`: this may take a moment).
   * @throws DeviceInUseError while {@link reset} destroys it.
   */
  override get primaryContext(): Context {
    return super.primaryContext as Context
  }

  /** The stream that work goes to when none is named: the legacy or the per-thread one, see `setStreamMode`. */
  get defaultStream(): Stream {
    this.#defaultStream ??= Stream.borrow(this.primaryContext, 0n)
    return this.#defaultStream
  }

  /** Makes a stream (`cuStreamCreateWithPriority`). */
  createStream(options: StreamOptions = {}): Stream {
    return Stream.create(this.primaryContext, options)
  }

  /** Makes an event, without timing unless asked (`cuEventCreate`). */
  createEvent(options: EventOptions = {}): Event {
    return Event.create(this.primaryContext, options)
  }

  /** Makes a pool of memory on the device (`cuMemPoolCreate`). */
  createMemoryPool(options: MemoryPoolOptions = {}): MemoryPool {
    return MemoryPool.create(this, options)
  }

  /** The pool that streams allocate from when none is named (`cuDeviceGetMemPool`). See `MemoryPool.setCurrent`. */
  get memoryPool(): MemoryPool {
    return MemoryPool.currentOf(this)
  }

  /** The pool that the driver made with the device (`cuDeviceGetDefaultMemPool`). */
  get defaultMemoryPool(): MemoryPool {
    return MemoryPool.defaultOf(this)
  }

  /** Bytes that sizes and offsets of memory on the device must be a multiple of (`cuMemGetAllocationGranularity`). */
  allocationGranularity(options: AllocationOptions & { readonly granularity?: Granularity | undefined } = {}): number {
    return allocationGranularity(this, options)
  }

  /** Makes memory without an address on the device (`cuMemCreate`). */
  createPhysicalMemory(byteLength: number, options: AllocationOptions = {}): PhysicalMemory {
    return PhysicalMemory.create(this, byteLength, options)
  }

  /** Makes typed memory on the device that grows and shrinks in place. */
  createGrowableBuffer<D extends DType>(dtype: D, options: GrowableBufferOptions): GrowableBuffer<D> {
    return GrowableBuffer.reserve(this, dtype, options)
  }

  /** Blocks until all work of the primary context has ended. */
  synchronizeSync(): void {
    this.primaryContext.synchronizeSync()
  }

  /** Resolves when all work of the primary context has ended. */
  async synchronize(): Promise<this> {
    await this.primaryContext.synchronize()
    return this
  }

  protected resetCall(): ResetCall {
    const call = (): number => cuDevicePrimaryCtxReset(this.handle)
    return { api: 'cuDevicePrimaryCtxReset', errors: driverErrors, needsContext: false, call }
  }

  protected override contextForgotten(): void {
    this.#defaultStream = undefined
  }

  get [Symbol.toStringTag](): string {
    return 'Device'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Device ${this.ordinal} (${this.name})`
  }
}

function requireDevice(value: unknown, name: string): void {
  if (!(value instanceof Device)) throw new TypeError(`${name} must be a Device, not ${describeValue(value)}`)
}

function textIn(bytes: Uint8Array): string {
  const end = bytes.indexOf(0)
  return new TextDecoder().decode(bytes.subarray(0, end < 0 ? bytes.length : end))
}
