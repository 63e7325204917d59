import { type CUdevice, cuDeviceGet } from '@shoal/cuda-sys/driver'
import { requireInteger, requireText } from '@shoal/types'
import type { CudaLibrary } from '../calls/cudaLibrary.js'
import { check, Status } from '../errors.js'
import { scratch } from '../native.js'
import type { Device } from './device.js'

/** The devices of this JavaScript thread in one of the two libraries, with one object per device. */
export class DeviceList<D extends Device> {
  readonly #devices = new Map<number, D>()
  readonly #cuda: CudaLibrary
  readonly #make: (ordinal: number, handle: CUdevice) => D

  constructor(cuda: CudaLibrary, make: (ordinal: number, handle: CUdevice) => D) {
    this.#cuda = cuda
    this.#make = make
  }

  /** Number of devices; 0 if a driver but no device exists. */
  get count(): number {
    const status = this.#cuda.startForCount()
    if (status === Status.noDevice) return 0
    const out = scratch()
    this.#check(this.#cuda.calls.deviceGetCount(out), 'deviceGetCount')
    return out.i32[0] as number
  }

  get(ordinal: number, api = 'Device.get', name = 'ordinal'): D {
    const known = this.#devices.get(ordinal)
    if (known !== undefined) return known
    const { count } = this
    if (count === 0)
      throw new RangeError(`${api}: ${name} must be the ordinal of a device, but this machine has no CUDA device`)
    requireInteger(ordinal, api, name, 0, count - 1)
    this.#cuda.start()
    const out = scratch()
    check(cuDeviceGet(out, ordinal), 'cuDeviceGet')
    const device = this.#make(ordinal, out.i32[0] as CUdevice)
    this.#devices.set(ordinal, device)
    return device
  }

  all(): readonly D[] {
    return Array.from({ length: this.count }, (_, ordinal) => this.get(ordinal))
  }

  getByPciBusId(pciBusId: string): D {
    const api = 'Device.getByPciBusId'
    requireText(pciBusId, api, 'pciBusId')
    this.#cuda.start()
    const out = scratch()
    this.#check(this.#cuda.calls.deviceGetByPCIBusId(out, pciBusId), 'deviceGetByPCIBusId')
    const found = out.i32[0] as number
    const device = this.all().find((candidate) => this.#cuda.deviceArgument(candidate) === found)
    if (device !== undefined) return device
    throw new RangeError(`${api}: pciBusId must be the id of a device that this process sees, not '${pciBusId}'`)
  }

  #check(status: number, call: 'deviceGetCount' | 'deviceGetByPCIBusId'): void {
    if (status !== Status.success) throw this.#cuda.error(status, this.#cuda.nameOf(call))
  }
}
