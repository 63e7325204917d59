import { ncclRedOp_t } from '@shoal/nccl-sys'
import { type DType, otherCopy, requireInteger, requireKeyOf } from '@shoal/types'
import type { LiveCommunicator } from '../lifetime/live.js'
import { requireNcclVersion } from '../version.js'
import { PreMulSum } from './reductionOps.js'

/** How to combine the elements of all ranks: `ncclSum` … `ncclMin`, or `ncclAvg` (NCCL 2.10). */
export type ReduceOp = 'sum' | 'prod' | 'max' | 'min' | 'avg'

const reduceOps: { readonly [O in ReduceOp]: ncclRedOp_t } = {
  sum: ncclRedOp_t.ncclSum,
  prod: ncclRedOp_t.ncclProd,
  max: ncclRedOp_t.ncclMax,
  min: ncclRedOp_t.ncclMin,
  avg: ncclRedOp_t.ncclAvg,
}

const firstWithAverage = 21003
/** `ncclMaxRedOp` */
const largestId = 0x7fff_ffff

/** Returns the `ncclRedOp_t` of the option `op`. */
export function reduceOp(
  live: LiveCommunicator,
  op: ReduceOp | PreMulSum | number | undefined,
  dtype: DType,
  api: string,
): ncclRedOp_t {
  if (op === undefined) return reduceOps.sum
  if (op instanceof PreMulSum) return op._codeFor(live, dtype, api)
  if (typeof op === 'number') return requireInteger(op, api, 'op', 0, largestId) as ncclRedOp_t
  if (op === 'avg') requireNcclVersion(`${api} with op 'avg'`, firstWithAverage)
  const copy = otherCopy(op, api, 'op', PreMulSum)
  if (copy !== undefined) throw copy
  return requireKeyOf(op, api, 'op', reduceOps)
}
