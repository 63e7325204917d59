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

/** Work with its order, built once and run many times, by an executable graph made of it. */
export type Graph = BaseGraph
export const Graph = withFactories(BaseGraph, {
  /** An empty graph on the current device, or the one named (`cuGraphCreate`). */
  create(options: DeviceOption = {}): Graph {
    return BaseGraph.create(onlyOwner(options, 'Graph.create'))
  },

  /**
   * A graph of what `fn` queues on the stream, which does not run now (`cuStreamBeginCapture`, `cuStreamEndCapture`).
   */
  capture(stream: Stream, fn: (stream: Stream) => void, options: CaptureOptions = {}): Graph {
    return BaseGraph.capture(stream, fn, options)
  },
})

/** The memory of the graphs of a device (`cuDeviceGetGraphMemAttribute`). @param device Default: the current one. */
export function graphMemoryUsage(device?: DeviceLike | number): GraphMemoryUsage {
  return baseUsage(deviceOrCurrent(device, 'graphMemoryUsage'))
}

/**
 * Sets the high-water marks back to what is in use (`cuDeviceSetGraphMemAttribute`). @param device Default: the current
 * one.
 */
export function resetGraphMemoryHigh(device?: DeviceLike | number): void {
  baseReset(deviceOrCurrent(device, 'resetGraphMemoryHigh'))
}

/**
 * Gives memory that no graph uses back to the system (`cuDeviceGraphMemTrim`). @param device Default: the current one.
 */
export function trimGraphMemory(device?: DeviceLike | number): void {
  baseTrim(deviceOrCurrent(device, 'trimGraphMemory'))
}
