import { ncclDataType_t } from '@shoal/nccl-sys'
import { attachSuppressed } from './attach.js'
import { isCollecting, isGroupOpen } from './group.js'
import type { LiveCommunicator } from './live.js'

// NCCL does not compare what the ranks of a communicator ask for: ranks that differ wait for each other for ever, or write
// beyond a buffer. Where one group holds the calls of several ranks, they can be compared before anything starts.

/** A collective operation in a group, as far as all ranks have to agree on it. */
export interface GroupedOperation {
  readonly api: string
  /** Elements of a reduction, bytes of what is only moved. */
  readonly amount: number
  /** `ncclDataType_t` of a reduction; undefined for what is only moved. */
  readonly type: number | undefined
  /** `ncclRedOp_t`; the operations that a program makes count as one, since each rank has its own. */
  readonly op: number | undefined
  readonly root: number | undefined
}

let members: LiveCommunicator[] = []
const firstOwnOp = 5

/** Notes a collective operation of the group that is open. */
export function noteOperation(
  live: LiveCommunicator,
  api: string,
  amount: number,
  type?: number,
  op?: number,
  root?: number,
): void {
  if (live.clique === undefined || !(isGroupOpen() || isCollecting())) return
  if (live.grouped === undefined) {
    live.grouped = []
    members.push(live)
  }
  live.grouped.push({ api, amount, type, op: op === undefined ? undefined : Math.min(op, firstOwnOp), root })
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
    const difference = other === live || other === undefined ? undefined : differenceOf(other, live)
    if (difference === undefined) continue
    if (first === undefined) first = difference
    else attachSuppressed(last, difference)
    last = difference
  }
  for (const live of ended) live.grouped = undefined
  return first
}

function differenceOf(one: LiveCommunicator, other: LiveCommunicator): Error | undefined {
  const [left = [], right = []] = [one.grouped, other.grouped]
  // What a rank has more may be for another group.
  for (let index = 0; index < Math.min(left.length, right.length); index += 1) {
    const [a, b] = [left[index] as GroupedOperation, right[index] as GroupedOperation]
    if (a.api === b.api && a.amount === b.amount && a.type === b.type && a.op === b.op && a.root === b.root) continue
    return new TypeError(
      `group: rank ${one.rank} calls ${textOf(a)}, rank ${other.rank} ${textOf(b)}; ` +
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

function textOf({ api, amount, type, root }: GroupedOperation): string {
  const what = type === undefined ? `${amount} bytes` : `${amount} of ${typeNames.get(type) ?? type}`
  return `${api} of ${what}${root === undefined ? '' : ` with root ${root}`}`
}
