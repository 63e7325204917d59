import type { nvshmem_float_sum_reduce, nvshmemx_float_sum_reduce_on_stream } from '@shoal/nvshmem-sys'
import { dtypeInfo, dtypes } from '@shoal/types'
import { requireOptions, requireWord } from '../checks.js'
import { checkNvshmem } from '../errors.js'
import { dtypesOf, type Family, typedFamily } from '../families.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { streamAt } from '../operands.js'
import type { WaitOptions } from '../queue/callQueue.js'
import type { OnStreamOptions } from './synchronization.js'
import type { CountOptions } from './dataCollectives.js'
import { type CollectiveOperands, type CollectiveTeam, checkCollective, checkOnStream } from './operands.js'
import { mostAtOnce, requireScratch, scratchTooSmall } from '../workarounds/reduceScratch.js'

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
  const parts = kind === 'reduce' ? partsOf(operands, team.peCount, live.scratch, api) : [operands]
  return { calls, api: `nvshmem_${nvshmemName}_${op}_${kind.toLowerCase()}`, parts }
}

function partsOf(whole: CollectiveOperands, peCount: number, scratch: number, api: string): CollectiveOperands[] {
  const { dtype, count, target, source } = whole
  const { bytes } = dtypeInfo(dtype)
  const most = mostAtOnce(bytes, peCount, scratch, target === source)
  if (count <= most) return [whole]
  if (most === 0) throw scratchTooSmall(scratch, peCount, api)
  return Array.from({ length: Math.ceil(count / most) }, (_, index) => {
    const from = index * most
    const offset = BigInt(from * bytes)
    return { dtype, count: Math.min(most, count - from), target: target + offset, source: source + offset }
  })
}

/** Makes every call also where an earlier one has failed: other PEs would wait in it. */
function callAll({ handle }: CollectiveTeam, { calls, parts }: Checked): number[] {
  return parts.map(({ dtype, target, source, count }) =>
    (calls.host(dtype) as typeof nvshmem_float_sum_reduce)(handle, target, source, count),
  )
}

function checkAll(statuses: readonly unknown[], api: string): void {
  for (const status of statuses) checkNvshmem(status, api)
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
  const statuses = await team.live.queue.run(api, () => callAll(team, checked), { wait: options })
  checkAll(statuses, checked.api)
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
  const statuses = team.live.queue.runSync(api, () => callAll(team, checked))
  checkAll(statuses, checked.api)
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
  const { queue } = live
  const { calls, parts, api: name } = check(team, kind, target, source, options, api)
  const stream = streamAt(live, options.stream, api)
  const callPart = ({ dtype, target, source, count }: CollectiveOperands): unknown =>
    (calls.onStream(dtype) as typeof nvshmemx_float_sum_reduce_on_stream)(handle, target, source, count, stream)
  const [only] = parts
  if (only !== undefined && parts.length === 1) {
    return queue.startChecked(
      api,
      () => callPart(only),
      (status) => checkOnStream(status, name),
    )
  }
  // Not on this thread: a stream takes some thousand calls, and holds up who has more until it has done the first.
  return queue
    .run(api, () => parts.map(callPart))
    .then((statuses) => {
      for (const status of statuses) checkOnStream(status, name)
    })
}
