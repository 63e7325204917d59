import { ncclDataType_t, type ncclRedOp_t } from '@shoal/nccl-sys'
import { attachSuppressed } from '../attach.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import type { AgreedOperation } from '../lifetime/noted.js'
import { isCollecting, isGroupOpen } from './groupState.js'

// NCCL does not compare what the ranks of a communicator ask for: ranks that differ wait for each other for ever, or write
// beyond a buffer. Where one group holds the calls of several ranks, they can be compared before anything starts.

const absent = -1
/** The operations that a program makes count as one, since each rank has its own. */
const firstOwnOp = 5

/** Tells what was noted in the group that is open from what is left of earlier ones. */
let groupNumber = 1
/** Of each rank that differs the first difference. */
const differences: { readonly live: LiveCommunicator; readonly error: Error }[] = []

/** What is only moved: so many bytes. */
export function movement(api: string, bytes: number, root: number = absent): AgreedOperation {
  return { api, amount: bytes, type: absent, op: absent, root }
}

/** What is reduced: so many elements. */
export function reduction(
  api: string,
  count: number,
  type: ncclDataType_t,
  op: ncclRedOp_t,
  root: number = absent,
): AgreedOperation {
  return { api, amount: count, type, op: Math.min(op, firstOwnOp), root }
}

/**
 * Notes a collective operation of the group that is open. Each is compared with what the rank that was first to get there
 * asked for; what a rank has more may be for another group.
 */
export function noteOperation(live: LiveCommunicator, operation: AgreedOperation): void {
  const { clique } = live
  if (clique === undefined || !(isGroupOpen() || isCollecting())) return
  if (live.group !== groupNumber) {
    live.group = groupNumber
    live.groupLength = 0
  }
  if (clique.group !== groupNumber) {
    clique.group = groupNumber
    clique.length = 0
  }
  const place = live.groupLength
  live.groupLength = place + 1
  if (place === clique.length) {
    clique.length = place + 1
    clique.operations[place] = operation
    clique.ranks[place] = live.rank
    return
  }
  const first = clique.operations[place] as AgreedOperation
  if (!areSame(first, operation)) noteDifference(clique.ranks[place] as number, first, live, operation)
}

function noteDifference(
  firstRank: number,
  first: AgreedOperation,
  live: LiveCommunicator,
  operation: AgreedOperation,
): void {
  if (differences.some((difference) => difference.live === live)) return
  const error = new TypeError(
    `group: rank ${firstRank} calls ${textOf(first)}, rank ${live.rank} ${textOf(operation)}; ` +
      'all ranks of a communicator call the same operation',
  )
  differences.push({ live, error })
}

/** Ends the comparison: the errors of ranks that do not do the same, undefined when they do. */
export function disagreement(): Error | undefined {
  groupNumber += 1
  if (differences.length === 0) return undefined
  const errors = differences.splice(0).map(({ error }) => error)
  for (const [index, error] of errors.entries()) {
    if (index > 0) attachSuppressed(errors[index - 1], error)
  }
  return errors[0]
}

function areSame(left: AgreedOperation, right: AgreedOperation): boolean {
  return (
    left.api === right.api &&
    left.amount === right.amount &&
    left.type === right.type &&
    left.op === right.op &&
    left.root === right.root
  )
}

// Of two names the header has the exact one first.
const typeNames = new Map<number, string>(
  Object.entries(ncclDataType_t)
    .reverse()
    .map(([name, code]) => [code, name]),
)

function textOf({ api, amount, type, op, root }: AgreedOperation): string {
  const what = type === absent ? `${amount} bytes` : `${amount} of ${typeNames.get(type) ?? type}, op ${op}`
  return `${api} of ${what}${root === absent ? '' : ` with root ${root}`}`
}
