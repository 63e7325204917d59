import { driver } from '@shoal/cuda-sys/driver'
import { type NativeCall, slots32 } from '@shoal/ffi/calls'
import { finishReleasesSync } from '../../core/context/releases.js'
import { check, checkRelease, driverError, isGone, Status } from '../../core/errors.js'
import { releaseAfterFailure } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import { withCreateReason } from '../handles/handleKinds.js'
import type { WrittenGrants } from './access.js'
import type { ResolvedProperties } from './properties.js'

/**
 * The calls of one step of growth. They go without the checks of the generated functions, because this package has made
 * or checked the arguments itself, and without a bigint.
 */
let create: NativeCall | undefined
let map: NativeCall | undefined
let setAccessCall: NativeCall | undefined
let release: NativeCall | undefined
let unmap: NativeCall | undefined
let outHandle: U64Halves | undefined
let outCells: Uint32Array | undefined

const fourGiB = 2 ** 32

/**
 * Makes physical memory and maps it at an address, `offset` bytes from `start` (`cuMemCreate`, `cuMemMap`,
 * `cuMemSetAccess`). The mapping alone keeps the memory (`cuMemRelease`).
 * @throws StatusError from the driver, with nothing made.
 */
export function createAndMap(
  properties: ResolvedProperties,
  byteLength: number,
  start: U64Halves,
  offset: number,
  grants: WrittenGrants,
): void {
  createMemory(properties, byteLength)
  outCells ??= scratch().u32
  const handleLow = outCells[0] as number
  const handleHigh = outCells[1] as number
  const low = lowAt(start, offset)
  const high = highAt(start, offset)
  let api = 'cuMemMap'
  let status = mapMemory(low, high, byteLength, handleLow, handleHigh)
  if (status === Status.success) {
    api = 'cuMemSetAccess'
    status = setAccess(low, high, byteLength, grants)
    if (status !== Status.success) unmapAfterFailure(low, high, byteLength)
  }
  const released = releaseMemory(handleLow, handleHigh)
  if (status !== Status.success) check(status, api)
  if (released === Status.success || isGone(released)) return
  unmapAfterFailure(low, high, byteLength)
  check(released, 'cuMemRelease')
}

function unmapAfterFailure(low: number, high: number, byteLength: number): void {
  releaseAfterFailure('Memory that was to grow', () => checkRelease(unmapMemory(low, high, byteLength), 'cuMemUnmap'))
}

function lowAt({ low }: U64Halves, offset: number): number {
  return ((low >>> 0) + offset) % fourGiB
}

function highAt({ low, high }: U64Halves, offset: number): number {
  return high + Math.floor(((low >>> 0) + offset) / fourGiB)
}

/**
 * Makes physical memory (`cuMemCreate`): its handle stands at the start of {@link scratch} then. @throws StatusError
 */
export function createMemory(properties: ResolvedProperties, byteLength: number): void {
  const { handleTypes, place } = properties
  let status = createWith(properties, byteLength)
  if (status === Status.outOfMemory) {
    const again = (): number => createWith(properties, byteLength)
    // Memory of the host belongs to no context.
    if (place.context !== undefined) status = place.context._withRoom(again, status)
    else if (finishReleasesSync()) status = again()
  }
  if (status === Status.success) return
  const detail = status === Status.outOfMemory ? place.context?._shortage(byteLength) : undefined
  withCreateReason(handleTypes, () => throwDriverError(status, 'cuMemCreate', detail), place.type)
}

function throwDriverError(status: number, api: string, detail: string | undefined): never {
  throw driverError(status, api, detail)
}

function createWith({ words }: ResolvedProperties, byteLength: number): number {
  create ??= driver.bind('cuMemCreate', 10020, 4)
  outHandle ??= halvesOf(scratch().address)
  slots32[0] = outHandle.low
  slots32[1] = outHandle.high
  slots32[2] = byteLength
  slots32[3] = byteLength / fourGiB
  slots32[4] = words.low
  slots32[5] = words.high
  slots32[6] = 0
  slots32[7] = 0
  return create()
}

function mapMemory(low: number, high: number, byteLength: number, handleLow: number, handleHigh: number): number {
  map ??= driver.bind('cuMemMap', 10020, 5)
  slots32[0] = low
  slots32[1] = high
  slots32[2] = byteLength
  slots32[3] = byteLength / fourGiB
  slots32[4] = 0
  slots32[5] = 0
  slots32[6] = handleLow
  slots32[7] = handleHigh
  slots32[8] = 0
  slots32[9] = 0
  return map()
}

function setAccess(low: number, high: number, byteLength: number, { words, count }: WrittenGrants): number {
  setAccessCall ??= driver.bind('cuMemSetAccess', 10020, 4)
  slots32[0] = low
  slots32[1] = high
  slots32[2] = byteLength
  slots32[3] = byteLength / fourGiB
  slots32[4] = words.low
  slots32[5] = words.high
  slots32[6] = count
  slots32[7] = 0
  return setAccessCall()
}

function releaseMemory(low: number, high: number): number {
  release ??= driver.bind('cuMemRelease', 10020, 1)
  slots32[0] = low
  slots32[1] = high
  return release()
}

function unmapMemory(low: number, high: number, byteLength: number): number {
  unmap ??= driver.bind('cuMemUnmap', 10020, 2)
  slots32[0] = low
  slots32[1] = high
  slots32[2] = byteLength
  slots32[3] = byteLength / fourGiB
  return unmap()
}
