import { ncclDataType_t } from '@shoal/nccl-sys'
import { attachSuppressed } from './attach.js'
import { isCollecting, isGroupOpen } from './groupState.js'
import type { LiveCommunicator } from './live.js'

// NCCL does not compare what the ranks of a communicator ask for: ranks that differ wait for each other for ever, or write
// beyond a buffer. Where one group holds the calls of several ranks, they can be compared before anything starts.

/**
 * The collective operations of a communicator in a group, as far as all ranks have to agree on them. Five entries each,
 * side by side, because a group in a loop should cost nothing: function, elements of a reduction or bytes of what is only
 * moved, `ncclDataType_t` of a reduction, `ncclRedOp_t`, root; `absent` where there is none.
 */
export type GroupedOperations = (string | number)[]

const entries = 5
const absent = -1
/** The operations that a program makes count as one, since each rank has its own. */
const firstOwnOp = 5

let members: LiveCommunicator[] = []

/** Notes a collective operation of the group that is open. */
export function noteOperation(
  live: LiveCommunicator,
  api: string,
  amount: number,
  type: number = absent,
  op: number = absent,
  root: number = absent,
): void {
  if (live.clique === undefined || !(isGroupOpen() || isCollecting())) return
  live.grouped ??= []
  if (live.grouped.length === 0) members.push(live)
  live.grouped.push(api, amount, type, Math.min(op, firstOwnOp), root)
}

/** Ends the comparison: the errors of ranks that do not do the same, undefined when they do. */
export function disagreement(): Error | undefined {
  if (members.length === 0) return undefined
  const ended = members
  members = []
  let first: Error | undefined
  let last: Error | undefined
  for (const live of ended) {
    const other = ended.find((before) => before.clique === live.clique)
    if (other === undefined || other === live) continue
    const difference = differenceOf(other, live)
    if (difference === undefined) continue
    first ??= difference
    if (last !== undefined) attachSuppressed(last, difference)
    last = difference
  }
  for (const { grouped } of ended) if (grouped !== undefined) grouped.length = 0
  return first
}

function differenceOf(one: LiveCommunicator, other: LiveCommunicator): Error | undefined {
  const [left = [], right = []] = [one.grouped, other.grouped]
  // What a rank has more may be for another group.
  const length = Math.min(left.length, right.length)
  for (let index = 0; index < length; index += 1) {
    if (left[index] === right[index]) continue
    const start = index - (index % entries)
    return new TypeError(
      `group: rank ${one.rank} calls ${textOf(left, start)}, rank ${other.rank} ${textOf(right, start)}; ` +
        'all ranks of a communicator call the same operation',
    )
  }
  return undefined
}

// Of two names the header has the exact one first.
const typeNames = new Map<number, string>(
  Object.entries(ncclDataType_t)
    .reverse()
    .map(([name, code]) => [code, name]),
)

function textOf(operations: GroupedOperations, start: number): string {
  const [api, amount, type, op, root] = operations.slice(start, start + entries)
  const what = type === absent ? `${amount} bytes` : `${amount} of ${typeNames.get(type as number) ?? type}, op ${op}`
  return `${api} of ${what}${root === absent ? '' : ` with root ${root}`}`
}
