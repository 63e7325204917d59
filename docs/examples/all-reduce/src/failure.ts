import { inspect } from 'node:util'

/** An error in words: one line for people, and where it came from for those who asked with --verbose. */
export function describeError(error: unknown, verbose: boolean): string {
  if (!(error instanceof Error)) return verbose ? inspect(error) : String(error)
  if (verbose) return inspect(error)
  const [first = '', ...more] = error.message.split('\n')
  return `${first || error.name}${more.length > 0 ? ' (--verbose tells more)' : ''}`
}
