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

// Emptied by pop(), which keeps its room for the next group: a group in a loop should cost nothing.
const members: LiveCommunicator[] = []

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

/** Notes a collective operation of the group that is open. */
export function noteOperation(live: LiveCommunicator, operation: AgreedOperation): void {
  if (live.clique === undefined || !(isGroupOpen() || isCollecting())) return
  live.grouped ??= []
  if (live.grouped.length === 0) members.push(live)
  live.grouped.push(operation)
}

/** Ends the comparison: the errors of ranks that do not do the same, undefined when they do. */
export function disagreement(): Error | undefined {
  if (members.length === 0) return undefined
  let first: Error | undefined
  let last: Error | undefined
  for (const live of members) {
    const difference = differenceOf(firstOfClique(live), live)
    if (difference === undefined) continue
    first ??= difference
    if (last !== undefined) attachSuppressed(last, difference)
    last = difference
  }
  for (let live = members.pop(); live !== undefined; live = members.pop()) {
    while (live.grouped?.pop() !== undefined);
  }
  return first
}

/** The member of the same communicator that the others are compared with. */
function firstOfClique(live: LiveCommunicator): LiveCommunicator {
  for (const member of members) if (member.clique === live.clique) return member
  return live
}

function differenceOf(one: LiveCommunicator, other: LiveCommunicator): Error | undefined {
  if (one === other || one.grouped === undefined || other.grouped === undefined) return undefined
  // What a rank has more may be for another group.
  const length = Math.min(one.grouped.length, other.grouped.length)
  for (let index = 0; index < length; index += 1) {
    const left = one.grouped[index] as AgreedOperation
    const right = other.grouped[index] as AgreedOperation
    if (areSame(left, right)) continue
    return new TypeError(
      `group: rank ${one.rank} calls ${textOf(left)}, rank ${other.rank} ${textOf(right)}; ` +
        'all ranks of a communicator call the same operation',
    )
  }
  return undefined
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
