import { driver } from '@shoal/cuda-sys/driver/common'
import { callInContext } from '@shoal/ffi'
import { type NativeCall, slots32, slots64 } from '@shoal/ffi/calls'
import type { LaunchShape } from './launchConfig.js'

let launch: NativeCall | undefined

/**
 * `cuLaunchKernel` without the checks of the generated function, which this package has made already: a launch is what
 * programs do most. Returns the status.
 */
export function launchCall(
  context: bigint,
  kernel: bigint,
  shape: LaunchShape,
  stream: bigint,
  parameters: bigint,
): number {
  launch ??= driver.bind('cuLaunchKernel', 4000, 11)
  slots64[0] = kernel
  slots32[2] = shape.gridX
  slots32[4] = shape.gridY
  slots32[6] = shape.gridZ
  slots32[8] = shape.blockX
  slots32[10] = shape.blockY
  slots32[12] = shape.blockZ
  slots32[14] = shape.sharedMemory
  slots64[8] = stream
  slots64[9] = parameters
  slots32[20] = 0
  slots32[21] = 0
  callInContext(context)
  return launch()
}
