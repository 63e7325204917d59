/** Refuses what is not a number, as the checks of the argument block do for other kinds. */
export function requireFloat(value: number, api: string, parameter: string): void {
  if (typeof value !== 'number') throw new TypeError(`${api}: ${parameter} must be a number, got ${typeof value}`)
}
