import { driver } from '@shoal/cuda-sys'
import { bindCall, slots64 } from '@shoal/ffi/calls'
import type { Device, Stream } from '@shoal/runtime'

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
