import { Context, type ContextDevice, startDriver } from '@shoal/cuda-base'
import { type CUdevice, cuDeviceTotalMem, cuMemGetInfo } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'

/** A device with no more than this package asks of one. */
export class TestDevice implements ContextDevice {
  readonly ordinal: number
  readonly handle: CUdevice
  #context: Context | undefined

  constructor(ordinal: number) {
    startDriver()
    this.ordinal = ordinal
    this.handle = ordinal as CUdevice
  }

  get primaryContext(): Context {
    this.#context ??= Context._retainPrimary<ContextDevice>(this)
    return this.#context
  }

  /** Bytes in use. */
  get used(): number {
    const out = NativeMemory.allocate(24)
    this.primaryContext._call('cuMemGetInfo', () => cuMemGetInfo(out.address, out.address + 8n))
    cuDeviceTotalMem(out.address + 16n, this.handle)
    return Number((out.u64[1] as bigint) - (out.u64[0] as bigint))
  }
}
