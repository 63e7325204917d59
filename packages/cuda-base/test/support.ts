import { Device, startDriver } from '@shoal/cuda-base'
import type { CUdevice } from '@shoal/cuda-sys/driver'

/** A device of its own for a test, whose primary context lives as long as the test wants. */
export class TestDevice extends Device {
  constructor(ordinal: number) {
    startDriver()
    super(ordinal, ordinal as CUdevice)
  }

  /** Bytes in use. */
  get used(): number {
    const { free, total } = this.memoryInfo()
    return total - free
  }
}
