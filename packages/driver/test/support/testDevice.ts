import { type CUdevice, driver } from '@shoal/cuda-sys/driver'
import { Device, driverLibrary, finishReleasesSync, type Stream, startDriver } from '@shoal/driver/shared'
import { bindCall, slots64 } from '@shoal/ffi/calls'

/** A device of its own for a test, whose primary context lives as long as the test wants. */
export class TestDevice extends Device {
  constructor(ordinal: number) {
    startDriver()
    super(ordinal, ordinal as CUdevice, driverLibrary)
  }

  /** Bytes in use, when what was disposed of is released. */
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

/** Makes a device fail with a status from now on, as a fault of a kernel does. */
export function injectError(device: Device, status: number): void {
  const call = simFunction('shoalSimInjectError')
  device.primaryContext.run(() => {
    slots64[0] = BigInt(device.ordinal)
    slots64[1] = BigInt(status)
    if (call() !== 0) throw new Error('shoalSimInjectError failed')
  })
}

/** Options whose getter throws, as those of a program may. */
export function throwing<K extends string>(key: K): { readonly [key in K]: never } {
  return Object.defineProperty({}, key, {
    enumerable: true,
    get() {
      throw new Error('thrown by a getter of the program')
    },
  }) as { readonly [key in K]: never }
}
