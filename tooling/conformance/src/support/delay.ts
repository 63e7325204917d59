import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { driver } from '@shoal/cuda-sys/driver'
import { type Device, isSoftwareDevice, Module, type Stream } from '@shoal/driver'
import { bindCall, slots64 } from '@shoal/ffi/calls'

let simulate: (() => number) | undefined

/** Keeps a stream busy for about this many milliseconds, without blocking this thread. */
export async function queueDelay(stream: Stream, milliseconds: number): Promise<void> {
  if (stream.device.isSoftware) {
    queueSimulatedDelay(stream, milliseconds)
    return
  }
  const kernel = await spinKernel(stream.device)
  const ticks = BigInt(stream.device.attribute('CLOCK_RATE')) * BigInt(Math.ceil(milliseconds))
  kernel.launch({ grid: 1, block: 1, stream }, ticks)
}

/** Returns why {@link queueDelay} does not work here, or undefined. */
export function whyNoDelay(): string | undefined {
  if (isSoftwareDevice()) return undefined
  const folder = process.env['SHOAL_KERNELS']
  if (folder === undefined) return 'SHOAL_KERNELS does not name the folder of test kernels'
  return existsSync(join(folder, 'spin.ptx')) ? undefined : `there is no spin.ptx in ${folder}`
}

function queueSimulatedDelay(stream: Stream, milliseconds: number): void {
  if (simulate === undefined) {
    const address = driver.rawSymbol('shoalSimStreamDelay')
    if (address === undefined) throw new Error('this software device cannot delay a stream')
    simulate = bindCall(address, 2, 'i32', 'shoalSimStreamDelay')
  }
  const call = simulate
  const { handle } = stream
  const status = stream.context.run(() => {
    slots64[0] = handle
    slots64[1] = BigInt(Math.round(milliseconds * 1e6))
    return call()
  })
  if (status !== 0) throw new Error(`shoalSimStreamDelay answered ${status}`)
}

const spins = new Map<Device, Promise<Module>>()

async function spinKernel(device: Device) {
  let module = spins.get(device)
  if (module === undefined) {
    const folder = process.env['SHOAL_KERNELS'] ?? ''
    module = Module.loadFile(device, join(folder, 'spin.ptx'))
    spins.set(device, module)
  }
  return (await module).kernel('spin', ['i64'])
}

/** Frees what {@link queueDelay} keeps for its next call. */
export async function disposeDelays(): Promise<void> {
  const modules = [...spins.values()]
  spins.clear()
  for (const module of modules) (await module).dispose()
}
