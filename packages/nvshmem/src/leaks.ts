/** Set SHOAL_TRACE_LEAKS=1 to see in each leak warning where the object was made. */
const traceLeaks = process.env['SHOAL_TRACE_LEAKS'] === '1'

interface Leak {
  readonly description: string
  /** Whether what owned the object has ended, and with it what was leaked. */
  readonly isOver: () => boolean
  readonly where: string | undefined
}

// Nothing is freed from here: freeing symmetric memory, destroying a team and finalizing wait for the other PEs, and a
// collector that waits for another process stops the program for ever.
const registry = new FinalizationRegistry<Leak>(({ description, isOver, where }) => {
  if (isOver()) return
  const detail = where === undefined ? '' : `\nmade ${where}`
  process.emitWarning(`${description}${detail}`, { type: 'ShoalLeakWarning' })
})

const never = (): boolean => false

/**
 * Reports `object` when it is collected before `forgetLeak` was called for it, unless `isOver`, which must not hold on to the
 * object.
 */
export function watchForLeak(object: object, description: string, isOver: () => boolean = never): void {
  const where = traceLeaks ? (new Error().stack ?? '').split('\n').slice(2, 8).join('\n').trim() : undefined
  registry.register(object, { description, isOver, where }, object)
}

export function forgetLeak(object: object): void {
  registry.unregister(object)
}
