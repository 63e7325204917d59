/**
 * Handles of memory: exported, sent, imported and dropped. Also a peer that follows no protocol, and incomplete
 * multicast objects.
 */
import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs'
import { driver } from '@shoal/cuda-sys/driver'
import {
  AddressRange,
  allocationGranularity,
  DescriptorSocket,
  DeviceBuffer,
  MulticastObject,
  PhysicalMemory,
  receiveHandle,
  sendHandle,
} from '@shoal/driver'
import { NativeMemory } from '@shoal/ffi'
import { bindCall, slots64 } from '@shoal/ffi/calls'
import { SystemError } from '@shoal/types'
import type { Memory, ModelType } from '../memory.js'
import { Mismatch, type Operation } from '../operation.js'
import { addRoot, shareables } from './making.js'

const file = '/dev/null'

/** Returns the number of open descriptors for the file that is sent. */
function descriptorsOfFile(): number {
  return readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === file
    } catch {
      return false // the descriptor of the listing itself
    }
  }).length
}

const share: Operation = {
  name: 'share mapped memory',
  weight: 3,
  async run(world) {
    const all = [...world.part(shareables)].filter(([{ root }, physical]) => !root.disposed && !physical.disposed)
    const found = world.pick(all)
    if (found === undefined) return undefined
    const [memory, physical] = found
    const owner = world.devices[memory.root.device] as never
    let handle = physical.export()
    if (world.chance(0.5)) {
      const [left, right] = DescriptorSocket.pair()
      const received = receiveHandle(right, 'memory')
      await sendHandle(left, handle)
      handle.dispose()
      handle = (await received) as typeof handle
      left.dispose()
      right.dispose()
    }
    const imported = PhysicalMemory.import(owner, handle)
    handle.dispose()
    const range = AddressRange.reserve(imported.byteLength)
    const mapped = range.map(imported)
    imported.dispose()
    range.dispose()
    const { dtype, length } = memory
    // The same memory at a second address. A write through one address is visible through the other.
    const alias: Memory = addRoot(world, 'alias', {
      buffer: DeviceBuffer.view(owner, mapped, dtype, { length }) as DeviceBuffer<ModelType>,
      block: memory.root.block,
      dtype,
      device: memory.root.device,
      object: mapped,
      dispose: () => (world.chance(0.5) ? mapped.dispose() : mapped[Symbol.asyncDispose]()),
    })
    return `${alias.name} of ${memory.name}`
  },
}

const drop: Operation = {
  name: 'drop handles',
  weight: 1,
  run(world) {
    const found = world.pick([...world.part(shareables).values()].filter(({ disposed }) => !disposed))
    if (found === undefined) return undefined
    // These handles are not disposed of, so the garbage collector must close them.
    for (let count = 0; count < 20; count += 1) found.export()
    return '20 of them'
  },
}

/** Calls `sendmsg` with descriptors, as another program would. */
function sendRaw(socket: DescriptorSocket, bytes: Uint8Array, descriptors: readonly number[]): void {
  const address = driver.rawSymbol('sendmsg')
  if (address === undefined) throw new Mismatch('there is no sendmsg')
  const call = bindCall(address, 3, 'i32', 'sendmsg')
  const control = 16 + descriptors.length * 4
  const memory = NativeMemory.allocate(56 + 16 + bytes.length + 8 + control + 8)
  const view = new DataView(memory.buffer)
  const vector = 56
  const payload = vector + 16
  const ancillary = payload + Math.ceil(bytes.length / 8) * 8
  const at = (offset: number): bigint => memory.address + BigInt(offset)
  memory.bytes.set(bytes, payload)
  view.setBigUint64(16, at(vector), true)
  view.setBigUint64(24, 1n, true)
  view.setBigUint64(vector, at(payload), true)
  view.setBigUint64(vector + 8, BigInt(bytes.length), true)
  if (descriptors.length > 0) {
    view.setBigUint64(32, at(ancillary), true)
    view.setBigUint64(40, BigInt(Math.ceil(control / 8) * 8), true)
    view.setBigUint64(ancillary, BigInt(control), true)
    view.setInt32(ancillary + 8, 1, true) // SOL_SOCKET
    view.setInt32(ancillary + 12, 1, true) // SCM_RIGHTS
    for (const [index, descriptor] of descriptors.entries()) view.setInt32(ancillary + 16 + 4 * index, descriptor, true)
  }
  slots64[0] = BigInt(socket.descriptor)
  slots64[1] = memory.address
  slots64[2] = 0n
  const sent = call()
  memory.dispose()
  if (sent !== bytes.length) throw new Mismatch(`sendmsg sent ${sent} of ${bytes.length} bytes`)
}

const receiveWithoutProtocol: Operation = {
  name: 'receive from a peer that keeps to no protocol',
  weight: 2,
  async run(world) {
    const [left, right] = DescriptorSocket.pair()
    const own = openSync(file, 'r')
    const before = descriptorsOfFile()
    const header = new Uint8Array(8)
    const announced = world.one([0, 0, 1, 3, 64])
    const length = world.random.integer(1, 12)
    new DataView(header.buffer).setUint32(0, length, true)
    new DataView(header.buffer).setUint32(4, announced, true)
    sendRaw(left, header, Array(announced).fill(own))
    let extra = 0
    for (let sent = 0; sent < length; sent += 1) {
      const count = world.one([0, 0, 1, 40])
      extra += count
      sendRaw(left, new Uint8Array(1), Array(count).fill(own))
    }
    const told = `${length} bytes, ${announced} descriptors and ${extra} more`
    if (extra > 0) await world.rejects(told, right.receive(), [SystemError])
    else {
      const { bytes, descriptors } = await right.receive()
      world.equal('bytes received', bytes.length, length)
      world.equal('descriptors received', descriptors.length, announced)
      for (const descriptor of descriptors) closeSync(descriptor)
    }
    world.equal(`open descriptors after ${told}`, descriptorsOfFile(), before)
    closeSync(own)
    left.dispose()
    right.dispose()
    return told
  },
}

const multicast: Operation = {
  name: 'bind to an incomplete multicast object',
  weight: 1,
  async run(world) {
    const [first, second] = world.devices as never[]
    if (second === undefined) return undefined
    const byteLength = allocationGranularity(first as never)
    const object = MulticastObject.create({ deviceCount: 2, byteLength, handleTypes: 'posix-fd' })
    const physical = PhysicalMemory.create(first as never, byteLength, { handleTypes: 'posix-fd' })
    // From now on, another process could add the second device, so the call waits.
    const handle = object.export()
    object.addDevice(first as never)
    const bound = object.bindMemory(physical)
    if (world.chance(0.5)) physical.dispose()
    const stream = world.one(world.liveStreams())
    stream.stream.query()
    stream.stream.record()
    await new Promise((resolve) => setImmediate(resolve))
    if (world.chance(0.5)) handle.dispose()
    object.addDevice(second as never)
    await bound
    handle.dispose()
    physical.dispose()
    object.dispose()
    return `${byteLength} bytes`
  },
}

/** Workers may use these too, because their handles end with the worker. */
export const handles: readonly Operation[] = [share, drop]
export const sharing: readonly Operation[] = [receiveWithoutProtocol, multicast]
