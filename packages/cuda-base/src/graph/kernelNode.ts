import type { Kernel, KernelArguments, KernelSignature, LaunchConfig } from '@shoal/cuda-base'
import { propertyOf, wrongType } from '@shoal/types'
import { kernelOffsets, NodeDescription } from './nodeDescription.js'

/** The sizes of a launch in a graph, whose stream is that of the graph's launch. */
export type NodeConfig = Omit<LaunchConfig, 'stream'>

/**
 * A node that runs a kernel (`CU_GRAPH_NODE_TYPE_KERNEL`). Sizes and arguments are checked now; the module and the memory
 * of the arguments must be there whenever the graph is launched.
 * @throws TypeError, RangeError, DisposedError
 *
 * @example
 * graph.add(kernelNode(axpy, { grid: 64, block: 256 }, 16_384, 2, x, y))
 */
export function kernelNode<const S extends KernelSignature>(
  kernel: Kernel<S>,
  config: NodeConfig,
  ...args: KernelArguments<S>
): NodeDescription {
  const api = 'kernelNode'
  requireKernel(kernel, api)
  const { shape, packArguments, needs, attributes } = kernel._describe(config, args, api)
  return new NodeDescription({
    type: 'kernel',
    needs,
    kernelAttributes: attributes?.entries(),
    packArguments,
    writeKernel: (view, kernelParams) => {
      view.setBigUint64(kernelOffsets.func, kernel._function, true)
      view.setUint32(kernelOffsets.gridDim, shape.gridX, true)
      view.setUint32(kernelOffsets.gridDim + 4, shape.gridY, true)
      view.setUint32(kernelOffsets.gridDim + 8, shape.gridZ, true)
      view.setUint32(kernelOffsets.blockDim, shape.blockX, true)
      view.setUint32(kernelOffsets.blockDim + 4, shape.blockY, true)
      view.setUint32(kernelOffsets.blockDim + 8, shape.blockZ, true)
      view.setUint32(kernelOffsets.sharedMemBytes, shape.sharedMemory, true)
      view.setBigUint64(kernelOffsets.kernelParams, kernelParams, true)
    },
  })
}

/** By what it has: its class is in another file of the package, which does not load this one. */
function requireKernel(value: unknown, api: string): void {
  if (typeof propertyOf(value, '_describe') === 'function') return
  throw wrongType(api, 'kernel', 'a Kernel', value)
}
