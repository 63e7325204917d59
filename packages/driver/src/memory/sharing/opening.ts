import { closeDescriptor } from '@shoal/ffi'
import { type MemoryLike, outOfRange } from '@shoal/types'
import type { Device } from '../../core/device/device.js'
import { Stream } from '../../core/stream/stream.js'
import { DeviceBuffer } from '../buffers/deviceBuffer.js'
import { MemoryPool } from '../buffers/memoryPool.js'
import { DescriptorHandle, type HandleContent, type HandleFacts } from '../handles/handles.js'
import { IpcMemory } from '../ipc/ipcMemory.js'
import { AddressRange } from '../vmm/addressRange.js'
import type { MappedRange } from '../vmm/mappedRange.js'
import { PhysicalMemory } from '../vmm/physicalMemory.js'
import { descriptorsInMessage, type SharedDescription } from './description.js'

/** Opened memory, and its holders in the order in which they are closed. */
export interface Opened {
  readonly memory: MemoryLike
  readonly holders: readonly Disposable[]
}

/** Returns the number of further messages, for descriptors that do not fit in the first one. */
export function messagesBehind({ way, pieces = [] }: SharedDescription): number {
  return way === 'posix-fd' ? Math.max(Math.ceil(pieces.length / descriptorsInMessage) - 1, 0) : 0
}

/** Opens memory in its way. Closes the descriptors that it takes. */
export async function open(
  device: Device,
  description: SharedDescription,
  descriptors: number[],
  more: () => Promise<number[]>,
  api: string,
): Promise<Opened> {
  const { way, byteOffset, byteLength, handle = '', deviceUuid } = description
  if (way !== 'posix-fd') requireDescriptors(descriptors, way === 'pool' ? 1 : 0, api)
  const bytes = byteOffset + byteLength
  if (way === 'process') return inProcess(device, description)
  if (way === 'ipc') {
    const memory = IpcMemory.open(device, {
      type: 'ipc-memory',
      handle,
      byteOffset: 0,
      dtype: 'u8',
      length: bytes,
      deviceUuid,
    })
    return { memory, holders: [memory] }
  }
  if (way === 'posix-fd') return mapPieces(device, description, descriptors, more, api)
  const facts = { content: 'pool', byteLength: 0, deviceUuid } as const
  const stream = Stream.create(device)
  const holders: Disposable[] = [stream]
  try {
    const pool = imported(descriptors, facts, (handle) => MemoryPool.import(device, handle))
    holders.unshift(pool)
    const memory = pool.importPointer(stream, { type: 'pool-pointer', data: handle, dtype: 'u8', length: bytes })
    return { memory, holders: [memory, ...holders] }
  } catch (error) {
    for (const holder of holders) holder[Symbol.dispose]()
    throw error
  }
}

function requireDescriptors({ length }: readonly number[], needed: number, api: string): void {
  if (length !== needed) throw outOfRange(api, 'message', `with ${needed} descriptors`, length)
}

/** Maps the memory behind the descriptors into one range of addresses, one after the other. */
async function mapPieces(
  device: Device,
  { allocationBytes = 0, pieces = [allocationBytes], deviceUuid }: SharedDescription,
  first: number[],
  more: () => Promise<number[]>,
  api: string,
): Promise<Opened> {
  const range = AddressRange.reserve(allocationBytes)
  const mapped: MappedRange[] = []
  try {
    let offset = 0
    for (let taken = 0; taken < pieces.length; taken += descriptorsInMessage) {
      const descriptors = taken === 0 ? first : await more()
      const sizes = pieces.slice(taken, taken + descriptorsInMessage)
      try {
        requireDescriptors(descriptors, sizes.length, api)
        for (const byteLength of sizes) {
          const facts = { content: 'memory', byteLength, deviceUuid } as const
          const physical = imported(descriptors, facts, (handle) => PhysicalMemory.import(device, handle))
          try {
            mapped.push(range.map(physical, { offset }))
          } finally {
            physical.dispose()
          }
          offset += byteLength
        }
      } finally {
        for (const descriptor of descriptors.splice(0)) closeDescriptor(descriptor)
      }
    }
    return { memory: mapped[0] as MappedRange, holders: [...mapped, range] }
  } catch (error) {
    for (const holder of [...mapped, range]) holder.dispose()
    throw error
  }
}

function inProcess(device: Device, { address = '', byteLength }: SharedDescription): Opened {
  const memory = DeviceBuffer.fromAddress(device, BigInt(address), 'u8', byteLength)
  return { memory, holders: [memory] }
}

/** Imports the memory behind a descriptor, then closes the descriptor. */
function imported<C extends HandleContent, T>(
  descriptors: number[],
  facts: HandleFacts<C>,
  take: (handle: DescriptorHandle<C>) => T,
): T {
  const handle = new DescriptorHandle(descriptors[0] as number, facts)
  descriptors.shift()
  try {
    return take(handle)
  } finally {
    handle.dispose()
  }
}
