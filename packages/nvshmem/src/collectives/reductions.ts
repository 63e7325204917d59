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
import { mostInPlace, requireScratch, scratchTooSmall } from './scratch.js'

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

interface Checked {
  readonly calls: Calls
  /** Name of the C function, for errors. */
  readonly api: string
  /** What NVSHMEM is called with, one after the other: most often all of it at once. */
  readonly parts: readonly CollectiveOperands[]
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
  const { dtype, count } = operands
  if (calls.host(dtype) === undefined) {
    throw new TypeError(`${api}: NVSHMEM has no ${op} of ${dtype}; it has it of ${dtypesOf(calls.host, dtypes)}`)
  }
  const { nvshmemName, bytes } = dtypeInfo(dtype)
  if (kind === 'reduceScatter') requireScratch(count * bytes, team.peCount, live.scratch, api)
  const parts =
    operands.target === operands.source ? partsInPlace(operands, team.peCount, live.scratch, api) : [operands]
  return { calls, api: `nvshmem_${nvshmemName}_${op}_${kind.toLowerCase()}`, parts }
}

function partsInPlace(whole: CollectiveOperands, peCount: number, scratch: number, api: string): CollectiveOperands[] {
  const { bytes } = dtypeInfo(whole.dtype)
  const most = mostInPlace(bytes, peCount, scratch)
  if (whole.count <= most) return [whole]
  if (most === 0) throw scratchTooSmall(scratch, peCount, api)
  return Array.from({ length: Math.ceil(whole.count / most) }, (_, index) => {
    const from = index * most
    const address = whole.target + BigInt(from * bytes)
    return { dtype: whole.dtype, count: Math.min(most, whole.count - from), target: address, source: address }
  })
}

function call(
  { handle }: CollectiveTeam,
  { calls }: Checked,
  { dtype, target, source, count }: CollectiveOperands,
): number {
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
  const record = (): void => {
    for (const part of checked.parts) call(team, checked, part)
  }
  const statuses = await team.live.queue.run(api, record, { wait: options })
  for (const status of statuses) checkNvshmem(status, checked.api)
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
  team.live.queue.runSync(api, () => {
    for (const part of checked.parts) checkNvshmem(call(team, checked, part), checked.api)
  })
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
  const { calls, parts, api: name } = check(team, kind, target, source, options, api)
  const stream = streamAt(live, options.stream, api)
  const queued = parts.map(({ dtype, target, source, count }) => {
    const call = calls.onStream(dtype) as typeof nvshmemx_float_sum_reduce_on_stream
    return live.queue.startChecked(
      api,
      () => call(handle, target, source, count, stream),
      (status) => checkNvshmem(status, `${name}_on_stream`),
    )
  })
  return queued.length === 1 ? (queued[0] as Promise<void>) : Promise.all(queued).then(() => undefined)
}
