import { randomBytes } from 'node:crypto'
import { repeat, timeOf } from '@shoal/cli/bench'
import {
  CUmemAccess_flags,
  CUmemAccessDesc,
  CUmemAllocationProp,
  CUmemAllocationType,
  type CUmemGenericAllocationHandle,
  CUmemLocationType,
  cuCtxSynchronize,
  cuMemCreate,
  cuMemMap,
  cuMemRelease,
  cuMemSetAccess,
  cuMemUnmap,
} from '@shoal/cuda-sys/driver'
import { AddressRange, allocationGranularity, type Device, GrowableBuffer, PhysicalMemory } from '@shoal/driver'
import { NativeMemory } from '@shoal/ffi'
import type { SubjectProcess } from '../subjectProcess.js'
import { type Case, type Row, type Subject, subjectIn, subjectOf, takeTurns } from '../turns.js'
import { inWords, type Sizes } from './sizes.js'

/** Microseconds of one of `count`. */
type TimedLoop = (count: number) => number

/** Measures mapping and growing. `c` is native/memory.c. */
export async function measureMapping(
  device: Device,
  c: SubjectProcess,
  sizes: Sizes,
  rounds: number,
): Promise<{ rows: Row[]; isIntact: boolean }> {
  const { mapBytes, stepBytes, steps, counts } = sizes
  const mapped = `create, map, set access, ${inWords(mapBytes)}`
  const grown = `${inWords(stepBytes * steps)} in steps of ${inWords(stepBytes)}`
  const mapping = { unit: 'µs', count: counts.map, loops: 3 }
  const growing = { ...mapping, count: counts.grow }
  const cases: Record<string, Case> = {
    map: { ...mapping, title: `${mapped}, wait, unmap, release` },
    mapWithoutWait: { ...mapping, title: `${mapped}, unmap, release` },
    grow: { ...growing, title: `growable buffer, ${grown}` },
    release: { ...growing, title: `released, ${grown}` },
    growByCopy: { ...growing, title: `allocated anew and copied, ${grown}` },
  }
  const range = AddressRange.reserve(mapBytes)
  const inside = (loop: TimedLoop, count: number): number => device.primaryContext.run(() => loop(count))
  const subjects: Subject[] = [
    subjectIn(c, 'C', Object.keys(cases), (test, count) => `${test} ${count}`, 1000),
    subjectOf('raw', rawLoops(device, range.address, mapBytes), inside),
    subjectOf('driver', driverLoops(device, range, sizes), inside),
  ]
  const isIntact = staysInPlace(device, sizes)
  warmUp(device)
  const rows = await takeTurns(cases, subjects, rounds)
  range.dispose()
  return { rows, isIntact }
}

function must(status: number): void {
  if (status !== 0) throw new Error(`a call of the CUDA driver failed with ${status}`)
}

function rawLoops(device: Device, address: bigint, bytes: number): Record<string, TimedLoop> {
  const location = { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, id: device.ordinal }
  const type = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
  const properties = CUmemAllocationProp.allocate({ type, location })
  const access = CUmemAccessDesc.allocate({ location, flags: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE })
  const out = NativeMemory.allocate(8)
  const loop = (waits: boolean) =>
    repeat(() => {
      must(cuMemCreate(out, bytes, properties, 0))
      const memory = out.u64[0] as CUmemGenericAllocationHandle
      must(cuMemMap(address, bytes, 0, memory, 0))
      must(cuMemSetAccess(address, bytes, access, 1))
      if (waits) must(cuCtxSynchronize())
      must(cuMemUnmap(address, bytes))
      must(cuMemRelease(memory))
    })
  return { map: (count) => timeOf(count, 0, loop(true)), mapWithoutWait: (count) => timeOf(count, 0, loop(false)) }
}

function driverLoops(
  device: Device,
  range: AddressRange,
  { mapBytes, stepBytes, steps }: Sizes,
): Record<string, TimedLoop> {
  const growth = (count: number): { readonly growing: number; readonly ending: number } => {
    let [growing, ending] = [0, 0]
    for (let i = 0; i < count; i += 1) {
      const start = performance.now()
      const buffer = GrowableBuffer.reserve(device, 'u8', { maximumLength: stepBytes * steps, stepBytes })
      for (let step = 1; step <= steps; step += 1) buffer.resize(step * stepBytes)
      const grown = performance.now()
      buffer.dispose()
      growing += grown - start
      ending += performance.now() - grown
    }
    return { growing: (growing * 1000) / count, ending: (ending * 1000) / count }
  }
  const mapOnce = (): void => {
    const memory = PhysicalMemory.create(device, mapBytes)
    range.map(memory).dispose()
    memory.dispose()
  }
  return {
    map: (count) => timeOf(count, 0, repeat(mapOnce)),
    grow: (count) => growth(count).growing,
    release: (count) => growth(count).ending,
  }
}

/** V8 compiles what runs often: with little memory, so that it does not take long. */
function warmUp(device: Device): void {
  const bytes = allocationGranularity(device)
  const range = AddressRange.reserve(bytes)
  for (let i = 0; i < 2_000; i += 1) {
    const memory = PhysicalMemory.create(device, bytes)
    range.map(memory).dispose()
    memory.dispose()
    if (i % 10 > 0) continue
    const buffer = GrowableBuffer.reserve(device, 'u8', { maximumLength: 16 * bytes, stepBytes: bytes })
    for (let step = 1; step <= 16; step += 1) buffer.resize(step * bytes)
    buffer.dispose()
  }
  range.dispose()
}

/** Whether a buffer that grew has its address and the contents of its first step. */
function staysInPlace(device: Device, { stepBytes, steps }: Sizes): boolean {
  const buffer = GrowableBuffer.reserve(device, 'u8', {
    maximumLength: stepBytes * steps,
    stepBytes,
    length: stepBytes,
  })
  try {
    const { address } = buffer
    const contents = new Uint8Array(randomBytes(stepBytes))
    buffer.buffer.copyFromSync(contents)
    for (let step = 2; step <= steps; step += 1) buffer.resize(step * stepBytes)
    // What is new is written, too, so that a mapping of the wrong memory would show.
    buffer.buffer.slice(stepBytes).fillSync(0x5a)
    const found = buffer.buffer.slice(0, stepBytes).toArraySync()
    return buffer.address === address && Buffer.compare(found, contents) === 0
  } finally {
    buffer.dispose()
  }
}
