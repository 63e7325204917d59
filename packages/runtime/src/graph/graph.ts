import {
  Graph as BaseGraph,
  resetGraphMemoryHigh as baseReset,
  trimGraphMemory as baseTrim,
  graphMemoryUsage as baseUsage,
  type CaptureOptions,
  type GraphMemoryUsage,
} from '@shoal/driver/graph'
import type { DeviceLike } from '@shoal/types'
import { type DeviceOption, deviceOrCurrent, onlyOwner } from '../device/currentDevice.js'
import type { Stream } from '../stream/stream.js'
import { withFactories } from '../withFactories.js'

/**
 * Ordered work, built once; an executable graph made from it runs many times.
 *
 * @example
 * using graph = Graph.capture(stream, () => {
 *   x.fill(0, { stream })
 * })
 * using step = graph.instantiate()
 * step.launch(stream)
 */
export type Graph = BaseGraph
export const Graph = withFactories(BaseGraph, {
  /** Creates an empty graph on the current or the given device (`cuGraphCreate`). */
  create(options: DeviceOption = {}): Graph {
    return BaseGraph.create(onlyOwner(options, 'Graph.create'))
  },

  /**
   * Captures the work that `fn` queues on the stream, without running it (`cuStreamBeginCapture`,
   * `cuStreamEndCapture`).
   */
  capture(stream: Stream, fn: (stream: Stream) => void, options: CaptureOptions = {}): Graph {
    return BaseGraph.capture(stream, fn, options)
  },
})

/**
 * Returns the graph memory usage of a device (`cuDeviceGetGraphMemAttribute`).
 *
 * @param device Default: the current device.
 */
export function graphMemoryUsage(device?: DeviceLike | number): GraphMemoryUsage {
  return baseUsage(deviceOrCurrent(device, 'graphMemoryUsage'))
}

/**
 * Resets the high-water marks to the current usage (`cuDeviceSetGraphMemAttribute`).
 *
 * @param device Default: the current device.
 */
export function resetGraphMemoryHigh(device?: DeviceLike | number): void {
  baseReset(deviceOrCurrent(device, 'resetGraphMemoryHigh'))
}

/**
 * Returns unused graph memory to the system (`cuDeviceGraphMemTrim`).
 *
 * @param device Default: the current device.
 */
export function trimGraphMemory(device?: DeviceLike | number): void {
  baseTrim(deviceOrCurrent(device, 'trimGraphMemory'))
}
