import { driver } from '@shoal/cuda-sys/driver'
import { contextSlot, type NativeCall, slots32 } from '@shoal/ffi/calls'
import type { U64Halves } from '../../core/u64Halves.js'
import type { LaunchShape } from './launchConfig.js'

const contextLow = 2 * contextSlot
const contextHigh = contextLow + 1
let launch: NativeCall | undefined

/**
 * `cuLaunchKernel` without the checks of the generated function, which this package has made already: a launch is what
 * programs do most. Returns the status.
 */
export function launchCall(
  context: U64Halves,
  kernel: U64Halves,
  shape: LaunchShape,
  stream: U64Halves,
  parameters: U64Halves,
): number {
  const call = (launch ??= driver.bind('cuLaunchKernel', 4000, 11))
  const slots = slots32
  slots[0] = kernel.low
  slots[1] = kernel.high
  slots[2] = shape.gridX
  slots[4] = shape.gridY
  slots[6] = shape.gridZ
  slots[8] = shape.blockX
  slots[10] = shape.blockY
  slots[12] = shape.blockZ
  slots[14] = shape.sharedMemory
  slots[16] = stream.low
  slots[17] = stream.high
  slots[18] = parameters.low
  slots[19] = parameters.high
  slots[20] = 0
  slots[21] = 0
  slots[contextLow] = context.low
  slots[contextHigh] = context.high
  return call()
}
