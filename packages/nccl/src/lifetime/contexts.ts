const open = new Map<bigint, number>()
let some = 0n

/** Notes that a communicator lives in this context. */
export function addContext(context: bigint): void {
  open.set(context, (open.get(context) ?? 0) + 1)
  some = context
}

export function removeContext(context: bigint): void {
  const left = (open.get(context) ?? 1) - 1
  if (left > 0) {
    open.set(context, left)
    return
  }
  open.delete(context)
  if (some === context) some = [...open.keys()].at(-1) ?? 0n
}

/** The context of one of the open communicators, 0n when there is none. */
export function anyContext(): bigint {
  return some
}
