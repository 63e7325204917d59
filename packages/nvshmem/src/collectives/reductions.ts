import { isCapturing, isInCapture } from '@shoal/driver/basics'
import type { nvshmem_float_sum_reduce, nvshmemx_float_sum_reduce_on_stream } from '@shoal/nvshmem-sys'
import {
  dtypeInfo,
  dtypes,
  type OptionKeys,
  requireKeyOf,
  requireOptions,
  type WaitOptions,
  waitKeys,
} from '@shoal/types'
import { checkNvshmem } from '../errors.js'
import { dtypesOf, type Family, typedFamily } from '../families.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { streamAt } from '../operands.js'
import { waitOf } from '../queue/callQueue.js'
import { startOnStream } from '../queue/onStream.js'
import { maxElementsPerCall, requireScratch, scratchTooSmall } from '../workarounds/reduceScratch.js'
import type { CountOptions } from './dataCollectives.js'
import { type CollectiveOperands, type CollectiveTeam, checkCollective, checkOnStream } from './operands.js'
import type { OnStreamOptions } from './synchronization.js'

/** How to combine the elements of all PEs; `and`, `or` and `xor` are for integers only. */
export type ReduceOp = 'sum' | 'prod' | 'min' | 'max' | 'and' | 'or' | 'xor'

/** Collectives that compute. */
export type Reduction = 'reduce' | 'reduceScatter'

/** Options of a reduction. */
export interface ReductionOptions extends CountOptions {
  /** The reduction. Default: `'sum'`. */
  readonly op?: ReduceOp | undefined
}

const reductionKeys: OptionKeys<ReductionOptions> = { op: true, count: true }
const waitingKeys: OptionKeys<ReductionOptions & WaitOptions> = { ...reductionKeys, ...waitKeys }
const streamKeys: OptionKeys<ReductionOptions & OnStreamOptions> = { ...reductionKeys, stream: true }

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
  /** Operands of the consecutive NVSHMEM calls; usually one. */
  readonly parts: readonly CollectiveOperands[]
}

function check(
  { live, team }: CollectiveTeam,
  kind: Reduction,
  target: SymmetricBuffer,
  source: SymmetricBuffer,
  options: ReductionOptions,
  keys: OptionKeys<ReductionOptions>,
  api: string,
): Checked {
  requireOptions(options, api, keys)
  const op = options.op ?? 'sum'
  const calls = requireKeyOf(op, api, 'op', families)[kind]
  const shape = {
    targetParts: 1,
    sourceParts: kind === 'reduce' ? 1 : team.peCount,
    inPlace: kind === 'reduce',
    computes: true,
  }
  const operands = checkCollective(live, target, source, options.count, shape, api)
  const { dtype, count } = operands
  if (calls.host(dtype) === undefined) {
    throw new TypeError(`${api}: NVSHMEM has no ${op} of ${dtype}, only of ${dtypesOf(calls.host, dtypes)}`)
  }
  const { nvshmemName, bytes } = dtypeInfo(dtype)
  if (kind === 'reduceScatter') requireScratch(count * bytes, team.peCount, live.scratch, api)
  const parts = kind === 'reduce' ? partsOf(operands, team.peCount, live.scratch, api) : [operands]
  return { calls, api: `nvshmem_${nvshmemName}_${op}_${kind.toLowerCase()}`, parts }
}

function partsOf(
  whole: CollectiveOperands,
  peCount: number,
  scratch: number | undefined,
  api: string,
): CollectiveOperands[] {
  const { dtype, count, target, source } = whole
  const { bytes } = dtypeInfo(dtype)
  const most = maxElementsPerCall(bytes, peCount, scratch, target === source)
  if (count <= most) return [whole]
  if (most === 0) throw scratchTooSmall(scratch, peCount, api)
  return Array.from({ length: Math.ceil(count / most) }, (_, index) => {
    const from = index * most
    const offset = BigInt(from * bytes)
    return { dtype, count: Math.min(most, count - from), target: target + offset, source: source + offset }
  })
}

function callPart({ handle }: CollectiveTeam, { calls }: Checked, part: CollectiveOperands): number {
  const { dtype, target, source, count } = part
  return (calls.host(dtype) as typeof nvshmem_float_sum_reduce)(handle, target, source, count)
}

/** Checks all statuses at the end: every call is made even after a failure, because other PEs would wait in it. */
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
  const checked = check(team, kind, target, source, options, waitingKeys, api)
  const statuses = await team.live.queue.run(api, () => checked.parts.map((part) => callPart(team, checked, part)), {
    wait: waitOf(options),
  })
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
  const checked = check(team, kind, target, source, options, reductionKeys, api)
  const statuses = checked.parts.map((part) => team.live.queue.callSync(api, () => callPart(team, checked, part)))
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
  const { calls, parts, api: name } = check(team, kind, target, source, options, streamKeys, api)
  const stream = streamAt(live, options.stream, api)
  const given = options.stream
  const uses = [target, source, team.team]
  const queuePart = ({ dtype, target, source, count }: CollectiveOperands): unknown =>
    (calls.onStream(dtype) as typeof nvshmemx_float_sum_reduce_on_stream)(handle, target, source, count, stream)
  const [only] = parts
  if (only !== undefined && parts.length === 1) {
    const check = (status: unknown): void => checkOnStream(status, name)
    return startOnStream(live, { api, stream, given, call: () => queuePart(only), uses, check })
  }
  // A capturing stream only records the calls.
  if (isCapturing() && isInCapture(live.context, stream)) {
    const check = (statuses: unknown): void => {
      for (const status of statuses as unknown[]) checkOnStream(status, name)
    }
    return startOnStream(live, { api, stream, given, call: () => parts.map(queuePart), uses, check })
  }
  // Not on this thread: a stream accepts about a thousand calls and then blocks its caller until the first has
  // completed.
  return queue
    .run(api, () => parts.map(queuePart), { operands: [given] })
    .then((statuses) => {
      for (const status of statuses) checkOnStream(status, name)
    })
}
