import {
  type CUdeviceptr,
  cuMemcpy,
  cuMemcpyDtoH,
  cuMemcpyHtoD,
  cuMemsetD2D8,
  cuMemsetD8,
  cuMemsetD16,
  cuMemsetD32,
  cuStreamSynchronize,
} from '@shoal/cuda-sys/driver'
import { byteLengthOf, bytesOf, copyInSlices, elementBytes, nameOfType } from '@shoal/driver/basics'
import { NativeMemory } from '@shoal/ffi'
import { dtypeInfo, dtypeOf, type ElementType, type WaitOptions, wrongType } from '@shoal/types'
import { checkCuda } from '../errors.js'
import type { CallOptions } from '../queue/callQueue.js'
import type { LiveSession } from '../queue/liveSession.js'
import { elementsOf } from '../values.js'

/** A driver call: its name for errors, and the function that makes it. */
type Step = readonly [api: string, call: () => number]

/** Returns the bytes of a typed array with elements of the type. @throws TypeError for any other value */
export function requireBytesFor(array: unknown, dtype: ElementType, api: string, parameter: string): Uint8Array {
  const { typedArray } = dtypeInfo(typeof dtype === 'string' ? dtype : 'u8')
  const isTyped = ArrayBuffer.isView(array) && !(array instanceof DataView)
  const held = isTyped ? dtypeOf(array) : undefined
  // Accept a Float16Array for f16, although the storage of f16 is a Uint16Array.
  if (held === undefined || (held !== dtypeOf(new typedArray(0)) && held !== dtype)) {
    throw wrongType(api, parameter, `a ${typedArray.name} (elements of ${nameOfType(dtype)}) or memory`, array)
  }
  const bytes = array as ArrayBufferView
  return byteLengthOf(bytes) === 0 ? new Uint8Array() : bytesOf(bytes) // a detached array has no bytes
}

/** Copies host elements to the device, on the session's thread. */
export async function upload(
  live: LiveSession,
  address: bigint,
  array: Uint8Array,
  wait: WaitOptions | undefined,
  api: string,
): Promise<void> {
  const memory = NativeMemory.allocate(array.byteLength)
  try {
    const after = copyInSlices(memory.bytes, array, `${api}: source`)
    await run(live, uploadSteps(address, memory, array.byteLength), api, { wait, keep: [memory], after })
  } finally {
    live.queue.free(memory)
  }
}

export function uploadSync(live: LiveSession, address: bigint, array: Uint8Array, api: string): void {
  runSync(live, uploadSteps(address, array, array.byteLength), api)
}

/** Copies elements of the device to the host, on the session's thread. */
export async function download(
  live: LiveSession,
  address: bigint,
  array: Uint8Array,
  wait: WaitOptions | undefined,
  api: string,
): Promise<void> {
  const bytes = array.byteLength
  const memory = NativeMemory.allocate(bytes)
  try {
    await run(live, [downloadStep(memory, address, bytes)], api, { wait, keep: [memory] })
    await copyInSlices(array, memory.bytes, `${api}: target`)
  } finally {
    live.queue.free(memory)
  }
}

export function downloadSync(live: LiveSession, address: bigint, array: Uint8Array, api: string): void {
  runSync(live, [downloadStep(array, address, array.byteLength)], api)
}

/** Copies between two ranges of memory that CUDA can reach. */
export function copyBetween(
  live: LiveSession,
  target: bigint,
  source: bigint,
  bytes: number,
  options: CallOptions,
  api: string,
): Promise<void> {
  return run(live, copySteps(target, source, bytes), api, options)
}

export function copyBetweenSync(live: LiveSession, target: bigint, source: bigint, bytes: number, api: string): void {
  runSync(live, copySteps(target, source, bytes), api)
}

export interface Filling {
  readonly dtype: ElementType
  readonly value: unknown
  readonly length: number
}

/** Writes one value to every element. */
export function fill(
  live: LiveSession,
  address: bigint,
  filling: Filling,
  wait: WaitOptions | undefined,
  api: string,
): Promise<void> {
  return run(live, fillSteps(address, filling, api), api, { wait })
}

export function fillSync(live: LiveSession, address: bigint, filling: Filling, api: string): void {
  runSync(live, fillSteps(address, filling, api), api)
}

async function run(live: LiveSession, steps: readonly Step[], api: string, options: CallOptions): Promise<void> {
  const record = (): void => {
    for (const [, call] of steps) call()
  }
  const statuses = await live.queue.run(api, record, options)
  for (const [index, [name]] of steps.entries()) checkCuda(statuses[index], name)
}

function runSync(live: LiveSession, steps: readonly Step[], api: string): void {
  for (const [name, call] of steps) checkCuda(live.queue.callSync(api, call), name)
}

function downloadStep(target: NativeMemory | Uint8Array, address: bigint, bytes: number): Step {
  return ['cuMemcpyDtoH', () => cuMemcpyDtoH(target, address as CUdeviceptr, bytes)]
}

// The driver only queues fills and copies between devices, and the end of a host copy may be in flight when it returns.
// NVSHMEM uses its own streams, and other PEs read this memory, so wait for completion.
const finish: Step = ['cuStreamSynchronize', () => cuStreamSynchronize(null)]

function uploadSteps(address: bigint, source: NativeMemory | Uint8Array, bytes: number): Step[] {
  return [['cuMemcpyHtoD', () => cuMemcpyHtoD(address as CUdeviceptr, source, bytes)], finish]
}

function copySteps(target: bigint, source: bigint, bytes: number): Step[] {
  return [['cuMemcpy', () => cuMemcpy(target as CUdeviceptr, source as CUdeviceptr, bytes)], finish]
}

function bitsOf(dtype: ElementType, value: unknown, api: string): DataView {
  if (typeof dtype !== 'string') return elementBytes(dtype, value, api, 'value')
  const entries = dtypeInfo(dtype).arrayEntries === 2 ? [value, 0] : [value]
  const array = bytesOf(elementsOf(dtype, entries, api, 'value'))
  return new DataView(array.buffer, array.byteOffset, array.byteLength)
}

function fillSteps(start: bigint, { dtype, value, length }: Filling, api: string): Step[] {
  const address = start as CUdeviceptr
  const bits = bitsOf(dtype, value, api)
  const bytes = bits.byteLength
  if (bytes === 1) return [['cuMemsetD8', () => cuMemsetD8(address, bits.getUint8(0), length)], finish]
  if (bytes === 2) return [['cuMemsetD16', () => cuMemsetD16(address, bits.getUint16(0, true), length)], finish]
  if (bytes === 4) return [['cuMemsetD32', () => cuMemsetD32(address, bits.getUint32(0, true), length)], finish]
  // Fill wider elements byte by byte: each byte position is a column of a matrix whose rows are the elements.
  const columns = Array.from({ length: bytes }, (_, byte): Step => {
    const column = (start + BigInt(byte)) as CUdeviceptr
    return ['cuMemsetD2D8', () => cuMemsetD2D8(column, bytes, bits.getUint8(byte), 1, length)]
  })
  return [...columns, finish]
}
