const open = new Map<bigint, number>()
let latest: bigint | undefined

/** Notes that a communicator lives in this context. */
export function addContext(context: bigint): void {
  open.set(context, (open.get(context) ?? 0) + 1)
  latest = context
}

export function removeContext(context: bigint): void {
  const left = (open.get(context) ?? 1) - 1
  if (left > 0) {
    open.set(context, left)
    return
  }
  open.delete(context)
  if (latest === context) latest = [...open.keys()].at(-1)
}

/** The context of one of the open communicators; undefined when there is none. */
export function anyContext(): bigint | undefined {
  return latest
}
