/** Set SHOAL_TRACE_LEAKS=1 to see in each leak warning where the object was made. */
const traceLeaks = process.env['SHOAL_TRACE_LEAKS'] === '1'

interface Leak {
  readonly description: string
  readonly end: string
  readonly where: string | undefined
}

// A communicator is never destroyed from here: that call waits for the other ranks, and a collector that waits for
// another process stops the program for ever.
const registry = new FinalizationRegistry<Leak>(({ description, end, where }) => {
  const detail = where === undefined ? '' : `\nmade ${where}`
  process.emitWarning(`${description} was dropped without ${end}; it stays open until the process ends${detail}`, {
    type: 'ShoalLeakWarning',
  })
})

/** Reports `object` when it is collected before `forgetLeak` was called for it; `end` is what should have been called. */
export function watchForLeak(object: object, description: string, end = 'destroy() or abort()'): void {
  const where = traceLeaks ? (new Error().stack ?? '').split('\n').slice(2, 8).join('\n').trim() : undefined
  registry.register(object, { description, end, where }, object)
}

export function forgetLeak(object: object): void {
  registry.unregister(object)
}
