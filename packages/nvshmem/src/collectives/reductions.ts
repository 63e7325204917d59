import type { nvshmem_float_sum_reduce, nvshmemx_float_sum_reduce_on_stream } from '@shoal/nvshmem-sys'
import { dtypeInfo, dtypes } from '@shoal/types'
import { requireOptions, requireWord } from '../checks.js'
import { checkNvshmem } from '../errors.js'
import { dtypesOf, type Family, typedFamily } from '../families.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { streamAt } from '../operands.js'
import type { WaitOptions } from '../session/callQueue.js'
import type { OnStreamOptions } from '../session/synchronization.js'
import type { CountOptions } from './gathering.js'
import { type CollectiveOperands, type CollectiveTeam, checkCollective } from './operands.js'

/** How the elements of all PEs become one; the last three for integers of NVSHMEM's bitwise families. */
export type ReduceOp = 'sum' | 'prod' | 'min' | 'max' | 'and' | 'or' | 'xor'

/** Collectives that compute. */
export type Reduction = 'reduce' | 'reduceScatter'

/** How elements are combined. */
export interface ReductionOptions extends CountOptions {
  /** Default `'sum'`. */
  readonly op?: ReduceOp | undefined
}

interface Calls {
  readonly host: Family<typeof nvshmem_float_sum_reduce>
  readonly onStream: Family<typeof nvshmemx_float_sum_reduce_on_stream>
}

function callsOf(op: ReduceOp): { readonly [R in Reduction]: Calls } {
  const of = (suffix: string): Calls => ({
    host: typedFamily('nvshmem_', `_${op}_${suffix}`),
    onStream: typedFamily('nvshmemx_', `_${op}_${suffix}_on_stream`),
  })
  return { reduce: of('reduce'), reduceScatter: of('reducescatter') }
}

const families: { readonly [O in ReduceOp]: { readonly [R in Reduction]: Calls } } = {
  sum: callsOf('sum'),
  prod: callsOf('prod'),
  min: callsOf('min'),
  max: callsOf('max'),
  and: callsOf('and'),
  or: callsOf('or'),
  xor: callsOf('xor'),
}

interface Checked extends CollectiveOperands {
  readonly calls: Calls
  /** Name of the C function, for errors. */
  readonly api: string
}

function check(
  { live, team }: CollectiveTeam,
  kind: Reduction,
  target: SymmetricBuffer,
  source: SymmetricBuffer,
  options: ReductionOptions,
  api: string,
): Checked {
  requireOptions(options, api, '{ op, count }')
  const op = options.op ?? 'sum'
  const calls = requireWord(families, op, 'op', api)[kind]
  const shape = { targetParts: 1, sourceParts: kind === 'reduce' ? 1 : team.peCount, inPlace: kind === 'reduce' }
  const operands = checkCollective(live, target, source, options.count, shape, api)
  if (calls.host(operands.dtype) === undefined) {
    throw new TypeError(
      `${api}: NVSHMEM has no ${op} of ${operands.dtype}; it has it of ${dtypesOf(calls.host, dtypes)}`,
    )
  }
  const name = dtypeInfo(operands.dtype).nvshmemName
  return { ...operands, calls, api: `nvshmem_${name}_${op}_${kind.toLowerCase()}` }
}

function call({ handle }: CollectiveTeam, { calls, dtype, target, source, count }: Checked): number {
  return (calls.host(dtype) as typeof nvshmem_float_sum_reduce)(handle, target, source, count)
}

export async function reduction(
  team: CollectiveTeam,
  kind: Reduction,
  target: SymmetricBuffer,
  source: SymmetricBuffer,
  options: ReductionOptions & WaitOptions,
): Promise<void> {
  const api = `Team.${kind}`
  const checked = check(team, kind, target, source, options, api)
  checkNvshmem(await team.live.queue.runOne(api, () => call(team, checked), { wait: options }), checked.api)
}

export function reductionSync(
  team: CollectiveTeam,
  kind: Reduction,
  target: SymmetricBuffer,
  source: SymmetricBuffer,
  options: ReductionOptions,
): void {
  const api = `Team.${kind}Sync`
  const checked = check(team, kind, target, source, options, api)
  checkNvshmem(
    team.live.queue.runSync(api, () => call(team, checked)),
    checked.api,
  )
}

export function queueReduction(
  team: CollectiveTeam,
  kind: Reduction,
  target: SymmetricBuffer,
  source: SymmetricBuffer,
  options: ReductionOptions & OnStreamOptions,
): Promise<void> {
  const api = `Team.${kind}OnStream`
  const { live, handle } = team
  const checked = check(team, kind, target, source, options, api)
  const stream = streamAt(live, options.stream, api)
  const queued = checked.calls.onStream(checked.dtype) as typeof nvshmemx_float_sum_reduce_on_stream
  return live.queue.startChecked(
    api,
    () => queued(handle, checked.target, checked.source, checked.count, stream),
    (status) => checkNvshmem(status, `${checked.api}_on_stream`),
  )
}
