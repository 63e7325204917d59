import type { Device, KernelAttribute } from '@shoal/driver'
import { attempt, type Value } from '../answer.js'
import type { KernelCase, OccupancyCase } from '../cases.js'
import { kernelOf } from './kernelOf.js'
import { Named } from './named.js'

export function kernelAnswer(device: Device, { ptx, kernel: name, set, attributes }: KernelCase): Value {
  const kernel = kernelOf(device, ptx, name)
  const found: Record<string, Value> = {}
  for (const [attribute, value] of Object.entries(set))
    found[`set ${attribute}`] = attempt(() => {
      kernel.setAttribute(attribute as KernelAttribute, value)
      return true
    })
  for (const attribute of attributes) found[attribute] = attempt(() => kernel.attribute(attribute as KernelAttribute))
  return { ...found, parameters: kernel.parameters.map(({ offset, bytes }) => [offset, bytes]) }
}

export function occupancyAnswer(device: Device, given: OccupancyCase): Value {
  const { block, sharedMemory, disableCachingOverride, blockCounts, limit, clusters } = given
  const kernel = kernelOf(device, given.ptx, given.kernel)
  const options = { sharedMemory, disableCachingOverride }
  using named = new Named(device, {})
  const found: Record<string, Value> = {
    maxActiveBlocks: attempt(() => kernel.maxActiveBlocks(block, options)),
    availableSharedMemory: blockCounts.map((count) => attempt(() => kernel.availableSharedMemory(count, block))),
    potentialBlockSize: attempt(() => {
      const { blockSize, minGridSize } = kernel.potentialBlockSize({
        ...options,
        ...(limit && { blockSizeLimit: limit }),
      })
      return [blockSize, minGridSize]
    }),
  }
  for (const [index, { grid, attributes }] of clusters.entries()) {
    const clustered = kernel.with(named.attributes(attributes))
    found[`activeClusters ${index}`] = attempt(() => clustered.maxActiveClusters({ grid, block, sharedMemory }))
    found[`clusterSize ${index}`] = attempt(() => clustered.potentialClusterSize({ grid, block, sharedMemory }))
  }
  return found
}
