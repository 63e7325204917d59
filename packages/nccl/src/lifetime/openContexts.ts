const open = new Map<bigint, number>()
let first: bigint | undefined

/** Notes that a communicator lives in this context. */
export function addContext(context: bigint): void {
  open.set(context, (open.get(context) ?? 0) + 1)
  first ??= context
}

export function removeContext(context: bigint): void {
  const left = (open.get(context) ?? 1) - 1
  if (left > 0) {
    open.set(context, left)
    return
  }
  open.delete(context)
  if (first === context) [first] = open.keys()
}

/**
 * The context of one of the open communicators, undefined when there is none: the one that is open longest, as that is
 * the most likely one to be current anyway.
 */
export function anyContext(): bigint | undefined {
  return first
}
