import { LaunchEnvironmentError } from '../errors.js'

export type Environment = Readonly<Record<string, string | undefined>>

/** Returns a non-negative integer; undefined if the variable is unset or empty. @throws LaunchEnvironmentError */
export function numberIn(environment: Environment, name: string): number | undefined {
  const text = environment[name]
  if (text === undefined || text === '') return undefined
  if (!/^\d{1,9}$/.test(text)) throw new LaunchEnvironmentError(`${name} should be a whole number, it is '${text}'`)
  return Number(text)
}

/** Like {@link numberIn}, for a required variable. @throws LaunchEnvironmentError */
export function requiredNumber(environment: Environment, name: string, because: string): number {
  const value = numberIn(environment, name)
  if (value === undefined) throw new LaunchEnvironmentError(`${because}, and ${name} is not set`)
  return value
}

export function textIn(environment: Environment, name: string): string | undefined {
  return environment[name] || undefined
}
