import { nameOfType } from '@shoal/driver/basics'
import type { nvshmem_team_t } from '@shoal/nvshmem-sys'
import { type DType, elementLayout, requireCount } from '@shoal/types'
import { checkNvshmem } from '../errors.js'
import { requireDType, requireRoom, symmetricAt, unitsOf } from '../operands.js'
import type { LiveSession } from '../queue/liveSession.js'

/** The team of a collective. */
export interface CollectiveTeam {
  readonly live: LiveSession
  readonly team: { readonly pe: number; readonly peCount: number }
  readonly handle: nvshmem_team_t
}

/** Sizes of the two sides of a collective, as multiples of the count per PE. */
export interface Shape {
  readonly targetParts: number
  readonly sourceParts: number
  /** Whether both sides may be the same memory. */
  readonly inPlace: boolean
  /** Whether it computes with the elements. */
  readonly computes?: boolean
}

/** The checked operands of a collective. */
export interface CollectiveOperands {
  readonly dtype: DType
  /** Elements of one part. */
  readonly count: number
  readonly target: bigint
  readonly source: bigint
}

/** Checks the status of a call on a stream; `api` is the corresponding C function of the host. */
export function checkOnStream(status: unknown, api: string): void {
  if (status !== 0) checkNvshmem(status, `${api.replace(/^nvshmem_/, 'nvshmemx_')}_on_stream`)
}

export function checkCollective(
  live: LiveSession,
  target: unknown,
  source: unknown,
  requested: number | undefined,
  { targetParts, sourceParts, inPlace, computes = false }: Shape,
  api: string,
): CollectiveOperands {
  const to = symmetricAt(live, target, api, 'target')
  const from = symmetricAt(live, source, api, 'source')
  const { dtype } = to
  if (from.dtype !== dtype) {
    const [own, other] = [nameOfType(dtype), nameOfType(from.dtype)]
    throw new TypeError(`${api}: target has elements of ${own}, source of ${other}; both must be the same`)
  }
  if (computes) requireDType(dtype, api, 'target')
  const count = requested === undefined ? from.length / sourceParts : requireCount(requested, api, 'count')
  if (requested === undefined && (!Number.isInteger(count) || to.length !== count * targetParts)) {
    throw new RangeError(
      `${api}: target has ${to.length} elements and source ${from.length}; ${targetParts} and ${sourceParts} parts of the ` +
        'same length are needed. Pass count to set the elements of a part.',
    )
  }
  requireRoom(to.byteLength, count * targetParts, dtype, 'target', api)
  requireRoom(from.byteLength, count * sourceParts, dtype, 'source', api)
  const { bytes } = elementLayout(dtype)
  const distance = Number(from.address - to.address)
  const overlaps = distance < count * targetParts * bytes && -distance < count * sourceParts * bytes && count > 0
  if (overlaps && !(inPlace && distance === 0)) {
    throw new RangeError(`${api}: target and source overlap${inPlace ? ' without being the same' : ''}`)
  }
  return { ...unitsOf(dtype, count, count * bytes), target: to.address, source: from.address }
}
