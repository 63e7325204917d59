/** One function of C that gives a status, and its name: the driver's or the runtime's of what both have. */
export interface NamedCall<A extends unknown[]> {
  readonly api: string
  readonly call: (...args: A) => number
}
