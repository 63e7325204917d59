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

/** Memory whose lines the cache treats in a way of its own while a kernel runs (`CUaccessPolicyWindow`). */
export interface AccessPolicyWindow {
  /** The range. */
  readonly memory: MemoryLike
  /** Which part of the accesses counts as hits, from 0 to 1. */
  readonly hitRatio: number
  /** What becomes of hits. */
  readonly hit: 'normal' | 'streaming' | 'persisting'
  /** What becomes of the rest; it cannot persist. */
  readonly miss: 'normal' | 'streaming'
}

/** An event that a kernel records by itself. */
export interface KernelEvent {
  /** The event, of the kernel's device. */
  readonly event: EventLike
  /** Recorded when all blocks have begun, and not when they trigger it. Default: false. */
  readonly triggerAtBlockStart?: boolean | undefined
}

/** An attribute that this package has no name for: its number, and up to 64 bytes of its value. */
export interface RawLaunchAttribute {
  /** Its `CUlaunchAttributeID`. */
  readonly id: number
  /** The value as C lays it out. */
  readonly value: Uint8Array
}

/** How launches of a kernel differ from plain ones (`CUlaunchAttribute`). What is left out is as the driver has it. */
export interface LaunchAttributes {
  /** How the cache treats a range of memory. */
  readonly accessPolicyWindow?: AccessPolicyWindow | undefined
  /** All blocks run at once, so that they can wait for each other: what cooperative groups' grids need. */
  readonly cooperative?: boolean | undefined
  /** Blocks in a cluster; the grid must be a multiple of it. */
  readonly clusterDimension?: Dimensions | undefined
  /** How the blocks of a cluster are spread over multiprocessors. */
  readonly clusterSchedulingPolicy?: 'default' | 'spread' | 'load-balancing' | undefined
  /** The next kernel of the stream may begin before this one has ended, and waits by itself. */
  readonly programmaticStreamSerialization?: boolean | undefined
  /** An event that blocks trigger before the kernel has ended. */
  readonly programmaticEvent?: KernelEvent | undefined
  /** As of a stream: a lower number goes first. */
  readonly priority?: number | undefined
  /** Which physical domains the two logical ones are. */
  readonly memorySynchronizationDomainMap?: { readonly default: number; readonly remote: number } | undefined
  /** The logical domain that its fences order. */
  readonly memorySynchronizationDomain?: 'default' | 'remote' | undefined
  /** A larger cluster, where there is room for it. */
  readonly preferredClusterDimension?: Dimensions | undefined
  /** Recorded when the last block has begun. */
  readonly launchCompletionEvent?: EventLike | undefined
  /** Percent of the cache that is to be shared memory; -1: as the driver thinks. */
  readonly sharedMemoryCarveout?: number | undefined
  /** Blocks are placed for the most use of NVLink. */
  readonly nvlinkUtilCentricScheduling?: boolean | undefined
  /** Attributes by number. */
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

// CUlaunchAttributeID
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

// CUlaunchAttribute: its number, and a value of 64 bytes behind it.
const attributeBytes = 72
const valueOffset = 8
const valueBytes = 64
const mostClusterBlocks = 2 ** 31 - 1
const clusterLimits = [mostClusterBlocks, mostClusterBlocks, mostClusterBlocks] as const

/** Attributes as C reads them: an array of `CUlaunchAttribute`. */
export class EncodedAttributes {
  readonly memory: NativeMemory
  readonly count: number
  /** Objects that the attributes name, each with a check that throws once it is gone. */
  readonly needs: ReadonlyMap<object, () => void>

  private constructor(memory: NativeMemory, count: number, needs: ReadonlyMap<object, () => void>) {
    this.memory = memory
    this.count = count
    this.needs = needs
  }

  /** @throws TypeError, RangeError; DisposedError */
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

  /** Number and value of each. */
  *entries(): Generator<{ readonly id: number; readonly value: Uint8Array }> {
    const view = new DataView(this.memory.buffer)
    for (let index = 0; index < this.count; index += 1) {
      const at = index * attributeBytes
      yield { id: view.getInt32(at, true), value: this.memory.bytes.slice(at + valueOffset, at + attributeBytes) }
    }
  }

  /** @throws DisposedError when an event or memory that they name is gone. */
  check(): void {
    // An iterator for nothing costs a launch some twenty nanoseconds.
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
