import {
  CUlaunchAttribute,
  CUlaunchConfig,
  cuGraphLaunch,
  cuLaunchKernel,
  cuLaunchKernelEx,
  driver,
} from '@shoal/cuda-sys/driver'
import type { Kernel, Stream } from '@shoal/driver'
import type { GraphExec } from '@shoal/driver/graph'
import { NativeMemory } from '@shoal/ffi'
import { type NativeCall, slots32 } from '@shoal/ffi/calls'

/** A driver call that is repeated with the same arguments, to measure only the way from JavaScript into C and back. */
export interface BareCall {
  /** Puts the arguments where C reads them. Other calls overwrite them. */
  readonly arm: () => void
  readonly call: NativeCall
}

// From CUlaunchAttributeID.
const cooperativeId = 2
const clusterId = 4

/** Calls `first` once, which leaves its arguments where C reads them. */
function bareCall(first: () => number, call: NativeCall): BareCall {
  check(first())
  const words = slots32.slice()
  const arm = (): void => {
    // `first` keeps the memory alive that the words point to.
    void first
    slots32.set(words)
  }
  return { arm, call }
}

function check(status: number): void {
  if (status !== 0) throw new Error(`the driver refused a launch: ${status}`)
}

/** The launches of the subjects, by case. */
export function bareCalls(
  stream: Stream,
  exec: GraphExec,
  empty0: Kernel<readonly []>,
  empty64: bigint,
  struct: Uint8Array,
): Readonly<Record<string, BareCall>> {
  const block = NativeMemory.allocate(struct.byteLength + 8)
  block.bytes.set(struct, 8)
  block.u64[0] = block.address + 8n
  const launchEx = driver.bind('cuLaunchKernelEx', 11060, 4)
  const withAttribute = (id: number, value: CUlaunchAttribute['value']): BareCall => {
    const attribute = NativeMemory.allocate(CUlaunchAttribute.size)
    CUlaunchAttribute.write(attribute, { id, value } as never)
    const config = NativeMemory.allocate(CUlaunchConfig.size)
    CUlaunchConfig.write(config, {
      gridDimX: 8,
      gridDimY: 1,
      gridDimZ: 1,
      blockDimX: 32,
      blockDimY: 1,
      blockDimZ: 1,
      hStream: stream.handle,
      attrs: attribute.address,
      numAttrs: 1,
    })
    return bareCall(() => {
      void attribute
      return cuLaunchKernelEx(config, empty0.handle, null, null)
    }, launchEx)
  }
  return {
    launch: bareCall(() => cuGraphLaunch(exec.handle, stream.handle), driver.bind('cuGraphLaunch', 10000, 2)),
    cluster: withAttribute(clusterId, { clusterDim: { x: 2, y: 1, z: 1 } } as never),
    cooperative: withAttribute(cooperativeId, { cooperative: 1 } as never),
    struct: bareCall(
      () => cuLaunchKernel(empty64 as never, 8, 1, 1, 32, 1, 1, 0, stream.handle, block, null),
      driver.bind('cuLaunchKernel', 4000, 11),
    ),
  }
}
