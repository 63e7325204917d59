import { ncclDataType_t, type ncclRedOp_t } from '@shoal/nccl-sys'
import { attachSuppressed } from '../attach.js'
import type { OperationSignature } from '../lifetime/checkedCollective.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import { isCollecting, isGroupOpen } from './groupState.js'

// NCCL does not compare the calls of ranks: ranks with different calls deadlock or write beyond a buffer. If one group
// contains the calls of several ranks, they can be compared before anything starts.

const absent = -1
/** User-defined operations count as one, because each rank has its own. */
const firstOwnOp = 5

/** Distinguishes the open group from records of earlier ones. */
let groupNumber = 1
/** The first difference of each rank that differs. */
const differences: { readonly live: LiveCommunicator; readonly error: Error }[] = []

/** Returns the signature of an operation that only copies: all ranks need equal bytes. */
export function copySignature(api: string, bytes: number, root: number = absent): OperationSignature {
  return { api, amount: bytes, type: absent, op: absent, root }
}

/** Returns the signature of a reduction: all ranks need equal elements, type and operation. */
export function reductionSignature(
  api: string,
  count: number,
  type: ncclDataType_t,
  op: ncclRedOp_t,
  root: number = absent,
): OperationSignature {
  return { api, amount: count, type, op: Math.min(op, firstOwnOp), root }
}

/**
 * Records a collective of the open group and compares it with the first rank's.
 *
 * Further calls of one rank may belong to another group. Returns the first signature if they are equal.
 */
export function recordOperation(live: LiveCommunicator, operation: OperationSignature): OperationSignature {
  const { localRanks } = live
  if (localRanks === undefined || !(isGroupOpen() || isCollecting())) return operation
  if (live.group !== groupNumber) {
    live.group = groupNumber
    live.groupLength = 0
  }
  if (localRanks.group !== groupNumber) {
    localRanks.group = groupNumber
    localRanks.length = 0
  }
  const place = live.groupLength
  live.groupLength = place + 1
  if (place === localRanks.length) {
    localRanks.length = place + 1
    localRanks.operations[place] = operation
    localRanks.ranks[place] = live.rank
    return operation
  }
  const first = localRanks.operations[place] as OperationSignature
  if (first === operation || areSame(first, operation)) return first
  recordMismatch(localRanks.ranks[place] as number, first, live, operation)
  return operation
}

function recordMismatch(
  firstRank: number,
  first: OperationSignature,
  live: LiveCommunicator,
  operation: OperationSignature,
): void {
  if (differences.some((difference) => difference.live === live)) return
  const error = new TypeError(
    `group: rank ${firstRank} calls ${textOf(first)}, rank ${live.rank} ${textOf(operation)}; ` +
      'all ranks of a communicator call the same operation',
  )
  differences.push({ live, error })
}

/** Ends the comparison. Returns the errors of mismatched ranks, chained; undefined if there are none. */
export function takeMismatch(): Error | undefined {
  groupNumber += 1
  if (differences.length === 0) return undefined
  const errors = differences.splice(0).map(({ error }) => error)
  for (const [index, error] of errors.entries()) {
    if (index > 0) attachSuppressed(errors[index - 1], error)
  }
  return errors[0]
}

function areSame(left: OperationSignature, right: OperationSignature): boolean {
  return (
    left.api === right.api &&
    left.amount === right.amount &&
    left.type === right.type &&
    left.op === right.op &&
    left.root === right.root
  )
}

// The exact one of two names comes first in the header, so the reversed list keeps it.
const typeNames = new Map<number, string>(
  Object.entries(ncclDataType_t)
    .reverse()
    .map(([name, code]) => [code, name]),
)

const opNames = ['ncclSum', 'ncclProd', 'ncclMax', 'ncclMin', 'ncclAvg']

function textOf({ api, amount, type, op, root }: OperationSignature): string {
  const what =
    type === absent
      ? `${amount} bytes`
      : `${amount} of ${typeNames.get(type) ?? type}, ${opNames[op] ?? 'an op of its own'}`
  return `${api} of ${what}${root === absent ? '' : ` with root ${root}`}`
}
