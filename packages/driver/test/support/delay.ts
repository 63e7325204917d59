import { driver } from '@shoal/cuda-sys'
import type { Context, Stream } from '@shoal/driver'
import { bindCall, slots64 } from '@shoal/ffi/calls'

function simFunction(name: string): bigint {
  const address = driver.rawSymbol(name)
  if (address === undefined) throw new Error(`the software device has no ${name}`)
  return address
}

/** Keeps a stream of the software device busy. */
export function delay(stream: Stream, milliseconds: number): void {
  const call = bindCall(simFunction('shoalSimStreamDelay'), 2, 'i32', 'shoalSimStreamDelay')
  const { handle } = stream
  stream.context.run(() => {
    slots64[0] = handle
    slots64[1] = BigInt(milliseconds) * 1_000_000n
    if (call() !== 0) throw new Error('shoalSimStreamDelay failed')
  })
}

/** Makes every context of a device fail with a status from now on, like a kernel's fault. */
export function injectError(context: Context, status: number): void {
  const call = bindCall(simFunction('shoalSimInjectError'), 2, 'i32', 'shoalSimInjectError')
  const { ordinal } = context.device
  context.run(() => {
    slots64[0] = BigInt(ordinal)
    slots64[1] = BigInt(status)
    if (call() !== 0) throw new Error('shoalSimInjectError failed')
  })
}
