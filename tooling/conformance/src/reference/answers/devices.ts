import { cuStreamGetAttribute } from '@shoal/cuda-sys/driver'
import {
  type ContextLimit,
  type Device,
  type DeviceAttribute,
  type DeviceBuffer,
  driverVersion,
  MemoryPool,
  type Stream,
} from '@shoal/driver'
import { attempt, hex, plain, type Value, written } from '../answer.js'
import type { DeviceCase, PoolCase, StreamCase } from '../cases.js'
import { Named } from './named.js'

export function deviceAnswer(device: Device, { attributes, limits }: DeviceCase): Value {
  const found: Record<string, Value> = {}
  for (const name of attributes) found[name] = attempt(() => device.attribute(name as DeviceAttribute))
  const context = device.primaryContext
  for (const name of limits) found[`limit ${name}`] = attempt(() => context.getLimit(name as ContextLimit))
  const { name, pciBusId, totalMemory, uuid } = device
  const { streamPriorityRange: priorities, apiVersion, flags, cacheConfig } = context
  const { major, minor } = driverVersion()
  return {
    ...found,
    ...{ name, pciBusId, totalMemory, apiVersion },
    uuid: uuid.replace(/^GPU-/, '').replaceAll('-', ''),
    driverVersion: major * 1000 + minor * 10,
    cacheConfig: ['none', 'shared', 'l1', 'equal'].indexOf(cacheConfig),
    priorities: [priorities.least, priorities.greatest],
    scheduling: flags.scheduling,
  }
}

const windowAttribute = 1
/** `CUlaunchAttributeID` of the attributes that streams have. */
const streamAttributes = [windowAttribute, 3, 8, 9, 10]
const bytesOfAttribute = 64
/** Offset of four padding bytes after a window's fields. Drivers may leave or change them. */
const windowPadding = 28

function describeStream(stream: Stream, named: Named): Value {
  const { nonBlocking, priority } = stream
  const found: Record<string, Value> = { nonBlocking, priority }
  for (const id of streamAttributes)
    found[id] = attempt(() => {
      const bytes = written(bytesOfAttribute, (out) => cuStreamGetAttribute(stream.handle, id as never, out))
      const view = new DataView(bytes.buffer)
      const pointer = id === windowAttribute ? named.place(view.getBigUint64(0, true)) : null
      if (id === windowAttribute) {
        view.setBigUint64(0, 0n, true)
        view.setUint32(windowPadding, 0)
      }
      return [hex(bytes), pointer]
    })
  return found
}

export function streamAnswer(device: Device, given: StreamCase): Value {
  const { nonBlocking, priority, attributes, synchronizationPolicy } = given
  using named = new Named(device, { a: 256 })
  using stream = device.createStream({ nonBlocking, priority })
  using copy = device.createStream()
  return {
    made: describeStream(stream, named),
    set: attempt(() => {
      stream.setAttributes({ ...named.attributes(attributes), ...(synchronizationPolicy && { synchronizationPolicy }) })
      return true
    }),
    after: describeStream(stream, named),
    copied: attempt(() => describeStream(copy.copyAttributes(stream), named)),
  }
}

function describePool(pool: MemoryPool): Value {
  const { reserved, used, reuse, releaseThreshold, device } = pool
  return {
    releaseThreshold: plain(releaseThreshold),
    reserved: reserved.current,
    reservedHigh: reserved.high,
    used: used.current,
    usedHigh: used.high,
    ...reuse,
    access: pool.getAccess(device),
  }
}

export function poolAnswer(device: Device, { maximumBytes, exported, set, allocations, trimTo }: PoolCase): Value {
  using pool = MemoryPool.create(device, {
    ...(maximumBytes && { maximumBytes }),
    ...(exported === true && { handleTypes: 'posix-fd' }),
  })
  const found: Record<string, Value> = { made: describePool(pool) }
  const { releaseThreshold, ...reuse } = set
  pool.setReuse(reuse)
  if (releaseThreshold !== undefined) pool.releaseThreshold = releaseThreshold
  found['set'] = describePool(pool)
  using stream = device.createStream({ nonBlocking: true })
  const memory: DeviceBuffer<'u8'>[] = []
  for (const bytes of allocations)
    found[`allocated ${memory.length}`] = attempt(() => {
      memory.push(pool.allocate(stream, 'u8', bytes))
      return describePool(pool)
    })
  for (const buffer of memory) buffer.disposeOn(stream)
  stream.synchronizeSync()
  found['freed'] = describePool(pool)
  pool.trimTo(trimTo)
  found['trimmed'] = describePool(pool)
  pool.resetHighWaterMarks()
  return { ...found, 'high-water marks': describePool(pool) }
}
