const open = new Map<bigint, number>()
let first: bigint | undefined

/** Records a communicator in this context. */
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
 * Returns the context of an open communicator; undefined if there is none.
 *
 * Picks the one that has been open longest, which is most likely already current.
 */
export function anyContext(): bigint | undefined {
  return first
}
