import { NativeMemory } from '@shoal/ffi'
import {
  type MemoryLike,
  type OptionKeys,
  optionalBoolean,
  outOfRange,
  requireInteger,
  requireKeyOf,
  requireList,
  requireNumber,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { type EventLike, requireEventLike } from '../context/eventLike.js'
import { toSpan } from '../ranges/span.js'
import { type Dimensions, dimensionsOf } from './dimensions.js'

/** A memory range whose caching a running kernel controls (`CUaccessPolicyWindow`). */
export interface AccessPolicyWindow {
  /** The memory of the window. */
  readonly memory: MemoryLike
  /** The fraction of the accesses that counts as hits, from 0 to 1. */
  readonly hitRatio: number
  /** How the cache treats hits. */
  readonly hit: 'normal' | 'streaming' | 'persisting'
  /** How the cache treats all other accesses. They cannot persist. */
  readonly miss: 'normal' | 'streaming'
}

/** An event that the kernel itself records. */
export interface KernelEvent {
  /** The event. It belongs to the kernel's device. */
  readonly event: EventLike
  /** Records the event when all blocks have started, not when the blocks trigger it. Default: false. */
  readonly triggerAtBlockStart?: boolean | undefined
}

/** A launch attribute without a name in this package. */
export interface RawLaunchAttribute {
  /** The number of the attribute (`CUlaunchAttributeID`). */
  readonly id: number
  /** The value in C's layout, at most 64 bytes. */
  readonly value: Uint8Array
}

/** Attributes of a kernel launch (`CUlaunchAttribute`). The driver's defaults apply to omitted attributes. */
export interface LaunchAttributes {
  /** How the cache treats a range of memory. */
  readonly accessPolicyWindow?: AccessPolicyWindow | undefined
  /**
   * Runs all blocks at the same time, so that blocks can wait for each other. `grid.sync()` in a kernel requires it.
   */
  readonly cooperative?: boolean | undefined
  /** Number of blocks in a cluster. The grid must be a multiple of it. */
  readonly clusterDimension?: Dimensions | undefined
  /** How the driver distributes the blocks of a cluster over multiprocessors. */
  readonly clusterSchedulingPolicy?: 'default' | 'spread' | 'load-balancing' | undefined
  /**
   * The next kernel of the stream can start before this kernel completes. The next kernel itself waits for the results.
   */
  readonly programmaticStreamSerialization?: boolean | undefined
  /** An event that the blocks trigger before the kernel completes. */
  readonly programmaticEvent?: KernelEvent | undefined
  /** Priority of the kernel, like a stream's priority: a lower number runs first. */
  readonly priority?: number | undefined
  /** The physical domains of the two logical domains. */
  readonly memorySynchronizationDomainMap?: { readonly default: number; readonly remote: number } | undefined
  /** The logical domain that the kernel's fences order. */
  readonly memorySynchronizationDomain?: 'default' | 'remote' | undefined
  /** A larger cluster size, used if the device has room for it. */
  readonly preferredClusterDimension?: Dimensions | undefined
  /** Records the event when the last block has started. */
  readonly launchCompletionEvent?: EventLike | undefined
  /** Percentage of the L1 cache to use as shared memory. -1 leaves the choice to the driver. */
  readonly sharedMemoryCarveout?: number | undefined
  /** Places blocks for the highest use of NVLink. */
  readonly nvlinkUtilCentricScheduling?: boolean | undefined
  /** Attributes without a name in this package. */
  readonly raw?: readonly RawLaunchAttribute[] | undefined
}

const attributeKeys: OptionKeys<LaunchAttributes> = {
  accessPolicyWindow: true,
  cooperative: true,
  clusterDimension: true,
  clusterSchedulingPolicy: true,
  programmaticStreamSerialization: true,
  programmaticEvent: true,
  priority: true,
  memorySynchronizationDomainMap: true,
  memorySynchronizationDomain: true,
  preferredClusterDimension: true,
  launchCompletionEvent: true,
  sharedMemoryCarveout: true,
  nvlinkUtilCentricScheduling: true,
  raw: true,
}

// Values of CUlaunchAttributeID
const ids = {
  accessPolicyWindow: 1,
  cooperative: 2,
  clusterDimension: 4,
  clusterSchedulingPolicy: 5,
  programmaticStreamSerialization: 6,
  programmaticEvent: 7,
  priority: 8,
  memorySynchronizationDomainMap: 9,
  memorySynchronizationDomain: 10,
  preferredClusterDimension: 11,
  launchCompletionEvent: 12,
  sharedMemoryCarveout: 14,
  nvlinkUtilCentricScheduling: 16,
} as const
const schedulingPolicies = { default: 0, spread: 1, 'load-balancing': 2 } as const
const accessProperties = { normal: 0, streaming: 1, persisting: 2 } as const
const missProperties = { normal: 0, streaming: 1 } as const
const domains = { default: 0, remote: 1 } as const

// Size of CUlaunchAttribute: the id, then a value of 64 bytes.
const attributeBytes = 72
const valueOffset = 8
const valueBytes = 64
const mostClusterBlocks = 2 ** 31 - 1
const clusterLimits = [mostClusterBlocks, mostClusterBlocks, mostClusterBlocks] as const

/** Encoded attributes: an array of `CUlaunchAttribute` for C. */
export class EncodedAttributes {
  readonly memory: NativeMemory
  readonly count: number
  /** Objects named by the attributes. Each has a check that throws after the object was disposed of. */
  readonly needs: ReadonlyMap<object, () => void>

  private constructor(memory: NativeMemory, count: number, needs: ReadonlyMap<object, () => void>) {
    this.memory = memory
    this.count = count
    this.needs = needs
  }

  /** Encodes attributes. @throws TypeError, RangeError; DisposedError */
  static of(attributes: LaunchAttributes, api: string): EncodedAttributes {
    requireOptions(attributes, api, attributeKeys, 'attributes')
    const needs = new Map<object, () => void>()
    const entries: { readonly id: number; readonly value: DataView }[] = []
    const add = <K extends keyof typeof ids>(
      name: K,
      write: (value: DataView, given: Exclude<LaunchAttributes[K], undefined>) => void,
    ): void => {
      const given = attributes[name]
      if (given === undefined) return
      const value = new DataView(new ArrayBuffer(valueBytes))
      write(value, given as Exclude<LaunchAttributes[K], undefined>)
      entries.push({ id: ids[name], value })
    }
    const flag = (name: 'cooperative' | 'programmaticStreamSerialization' | 'nvlinkUtilCentricScheduling'): void =>
      add(name, (value, given) => value.setInt32(0, optionalBoolean(given, api, name, false) ? 1 : 0, true))
    const word = (
      name: 'clusterSchedulingPolicy' | 'memorySynchronizationDomain',
      table: { readonly [word: string]: number },
    ): void => add(name, (value, given) => value.setInt32(0, requireKeyOf(given, api, name, table), true))
    const cluster = (name: 'clusterDimension' | 'preferredClusterDimension'): void =>
      add(name, (value, given) => {
        for (const [axis, size] of dimensionsOf(given, api, name, clusterLimits).entries())
          value.setUint32(axis * 4, size, true)
      })

    add('accessPolicyWindow', (value, given) => writeWindow(value, given, api, needs))
    flag('cooperative')
    cluster('clusterDimension')
    word('clusterSchedulingPolicy', schedulingPolicies)
    flag('programmaticStreamSerialization')
    add('programmaticEvent', (value, given) => {
      requireOptions(given, api, { event: true, triggerAtBlockStart: true }, 'programmaticEvent')
      writeEvent(value, given.event, api, 'programmaticEvent.event', needs)
      const atStart = optionalBoolean(given.triggerAtBlockStart, api, 'programmaticEvent.triggerAtBlockStart', false)
      value.setInt32(12, atStart ? 1 : 0, true)
    })
    add('priority', (value, given) =>
      value.setInt32(0, requireInteger(given, api, 'priority', -(2 ** 31), 2 ** 31 - 1), true),
    )
    add('memorySynchronizationDomainMap', (value, given) => {
      requireOptions(given, api, { default: true, remote: true }, 'memorySynchronizationDomainMap')
      value.setUint8(0, requireInteger(given.default, api, 'memorySynchronizationDomainMap.default', 0, 255))
      value.setUint8(1, requireInteger(given.remote, api, 'memorySynchronizationDomainMap.remote', 0, 255))
    })
    word('memorySynchronizationDomain', domains)
    cluster('preferredClusterDimension')
    add('launchCompletionEvent', (value, given) => writeEvent(value, given, api, 'launchCompletionEvent', needs))
    add('sharedMemoryCarveout', (value, given) =>
      value.setInt32(0, requireInteger(given, api, 'sharedMemoryCarveout', -1, 100), true),
    )
    flag('nvlinkUtilCentricScheduling')
    entries.push(...rawEntries(attributes.raw, api))

    const memory = NativeMemory.allocate(Math.max(entries.length, 1) * attributeBytes)
    const view = new DataView(memory.buffer)
    for (const [index, { id, value }] of entries.entries()) {
      view.setInt32(index * attributeBytes, id, true)
      memory.bytes.set(new Uint8Array(value.buffer), index * attributeBytes + valueOffset)
    }
    return new EncodedAttributes(memory, entries.length, needs)
  }

  /** Yields the number and the value of each attribute. */
  *entries(): Generator<{ readonly id: number; readonly value: Uint8Array }> {
    const view = new DataView(this.memory.buffer)
    for (let index = 0; index < this.count; index += 1) {
      const at = index * attributeBytes
      yield { id: view.getInt32(at, true), value: this.memory.bytes.slice(at + valueOffset, at + attributeBytes) }
    }
  }

  /** @throws DisposedError when an event or memory in the attributes was disposed of */
  check(): void {
    // An iterator over an empty map costs a launch about 20 ns.
    if (this.needs.size === 0) return
    for (const check of this.needs.values()) check()
  }
}

function writeWindow(value: DataView, given: AccessPolicyWindow, api: string, needs: Map<object, () => void>): void {
  const name = 'accessPolicyWindow'
  requireOptions(given, api, { memory: true, hitRatio: true, hit: true, miss: true }, name)
  const { address, byteLength } = toSpan(given.memory, api, `${name}.memory`)
  needs.set(given.memory, () => void toSpan(given.memory, api, `${name}.memory`))
  value.setBigUint64(0, address, true)
  value.setBigUint64(8, BigInt(byteLength), true)
  value.setFloat32(16, requireNumber(given.hitRatio, api, `${name}.hitRatio`, 0, 1), true)
  value.setInt32(20, requireKeyOf(given.hit, api, `${name}.hit`, accessProperties), true)
  value.setInt32(24, requireKeyOf(given.miss, api, `${name}.miss`, missProperties), true)
}

function writeEvent(
  value: DataView,
  event: EventLike,
  api: string,
  name: string,
  needs: Map<object, () => void>,
): void {
  const checked = requireEventLike(event, api, name)
  value.setBigUint64(0, checked.handle, true)
  needs.set(checked, () => void checked.handle)
}

function rawEntries(raw: readonly RawLaunchAttribute[] | undefined, api: string) {
  if (raw === undefined) return []
  return requireList(raw, api, 'raw', 'an array of attributes').map((one, index) => {
    const name = `raw[${index}]`
    requireOptions(one, api, { id: true, value: true }, name)
    const id = requireInteger(one.id, api, `${name}.id`, 0, 2 ** 31 - 1)
    if (!(one.value instanceof Uint8Array)) throw wrongType(api, `${name}.value`, 'a Uint8Array', one.value)
    if (one.value.length > valueBytes)
      throw outOfRange(api, `${name}.value`, `at most ${valueBytes} bytes`, one.value.length)
    const value = new Uint8Array(valueBytes)
    value.set(one.value)
    return { id, value: new DataView(value.buffer) }
  })
}
