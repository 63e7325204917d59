import { type CUdevice, driver } from '@shoal/cuda-sys/driver'
import { Device, driverLibrary, finishReleasesSync, type Stream, startDriver } from '@shoal/driver/shared'
import { bindCall, slots64 } from '@shoal/ffi/calls'

/** A separate device for a test, which controls the life of its primary context. */
export class TestDevice extends Device {
  constructor(ordinal: number) {
    startDriver()
    super(ordinal, ordinal as CUdevice, driverLibrary)
  }

  /** Bytes in use, after pending releases. */
  get used(): number {
    finishReleasesSync()
    const { free, total } = this.memoryInfo()
    return total - free
  }
}

function simFunction(name: string): () => number {
  const address = driver.rawSymbol(name)
  if (address === undefined) throw new Error(`the software device has no ${name}`)
  return bindCall(address, 2, 'i32', name)
}

/** Keeps a stream of the software device busy. */
export function delay(stream: Stream, milliseconds: number): void {
  const call = simFunction('shoalSimStreamDelay')
  const { handle } = stream
  stream.context.run(() => {
    slots64[0] = handle
    slots64[1] = BigInt(milliseconds) * 1_000_000n
    if (call() !== 0) throw new Error('shoalSimStreamDelay failed')
  })
}

/** Makes a device fail with a status from now on, like a kernel's fault. */
export function injectError(device: Device, status: number): void {
  const call = simFunction('shoalSimInjectError')
  device.primaryContext.run(() => {
    slots64[0] = BigInt(device.ordinal)
    slots64[1] = BigInt(status)
    if (call() !== 0) throw new Error('shoalSimInjectError failed')
  })
}

/** Options whose getter throws, which a program may pass. */
export function throwing<K extends string>(key: K): { readonly [key in K]: never } {
  return Object.defineProperty({}, key, {
    enumerable: true,
    get() {
      throw new Error('thrown by a getter of the program')
    },
  }) as { readonly [key in K]: never }
}
