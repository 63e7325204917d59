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
import { AddressRange, allocationGranularity, Device, GrowableBuffer, PhysicalMemory } from '@shoal/driver'
import { NativeMemory } from '@shoal/ffi'
import { type Subject, subjectOf } from '../turns.js'
import type { Sizes } from './sizes.js'

/** Runs `count` iterations and returns the microseconds per iteration. */
type TimedLoop = (count: number) => number

/**
 * The subjects for `startNodeSubjects`. Arguments: the bytes of a mapping, the bytes of a step, the number of steps.
 */
export function makeSubjects(words: readonly string[]): readonly Subject[] {
  const [mapBytes = 0, stepBytes = 0, steps = 0] = words.map(Number)
  const device = Device.get(0)
  const range = AddressRange.reserve(mapBytes)
  const inside = (loop: TimedLoop, count: number): number => device.primaryContext.run(() => loop(count))
  warmUp(device)
  return [
    subjectOf('raw', rawLoops(device, range.address, mapBytes), inside),
    subjectOf('driver', driverLoops(device, range, { mapBytes, stepBytes, steps }), inside),
  ]
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
  { mapBytes, stepBytes, steps }: Pick<Sizes, 'mapBytes' | 'stepBytes' | 'steps'>,
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

/** Lets V8 compile the code. Uses little memory, so that this is fast. */
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
