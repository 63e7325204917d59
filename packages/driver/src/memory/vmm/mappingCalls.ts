import {
  cuMemCreateUnchecked,
  cuMemMapUnchecked,
  cuMemReleaseUnchecked,
  cuMemSetAccessUnchecked,
  cuMemUnmapUnchecked,
} from '../../core/calls/uncheckedCalls.gen.js'
import { finishReleasesSync } from '../../core/context/releases.js'
import { check, checkRelease, driverError, isGone, Status } from '../../core/errors.js'
import { releaseAfterFailure } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import { withCreateReason } from '../handles/handleKinds.js'
import type { WrittenGrants } from './access.js'
import type { ResolvedProperties } from './properties.js'

let outHandle: U64Halves | undefined
let outCells: Uint32Array | undefined

const fourGiB = 2 ** 32

/**
 * Creates physical memory and maps it `offset` bytes after `start` (`cuMemCreate`, `cuMemMap`, `cuMemSetAccess`). Only
 * the mapping keeps the memory (`cuMemRelease`).
 * @throws StatusError from the driver, with nothing created
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
  let status = cuMemMapUnchecked(low, high, byteLength, handleLow, handleHigh)
  if (status === Status.success) {
    api = 'cuMemSetAccess'
    status = cuMemSetAccessUnchecked(low, high, byteLength, grants.words, grants.count)
    if (status !== Status.success) unmapAfterFailure(low, high, byteLength)
  }
  const released = cuMemReleaseUnchecked(handleLow, handleHigh)
  if (status !== Status.success) check(status, api)
  if (released === Status.success || isGone(released)) return
  unmapAfterFailure(low, high, byteLength)
  check(released, 'cuMemRelease')
}

function unmapAfterFailure(low: number, high: number, byteLength: number): void {
  releaseAfterFailure('Memory that was to grow', () =>
    checkRelease(cuMemUnmapUnchecked(low, high, byteLength), 'cuMemUnmap'),
  )
}

function lowAt({ low }: U64Halves, offset: number): number {
  return ((low >>> 0) + offset) % fourGiB
}

function highAt({ low, high }: U64Halves, offset: number): number {
  return high + Math.floor(((low >>> 0) + offset) / fourGiB)
}

/**
 * Creates physical memory (`cuMemCreate`) and writes its handle to the start of {@link scratch}. @throws StatusError
 */
export function createMemory(properties: ResolvedProperties, byteLength: number): void {
  const { handleTypes, place } = properties
  let status = createWith(properties, byteLength)
  if (status === Status.outOfMemory) {
    const again = (): number => createWith(properties, byteLength)
    // Host memory has no context.
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
  outHandle ??= halvesOf(scratch().address)
  return cuMemCreateUnchecked(outHandle, byteLength, words)
}
