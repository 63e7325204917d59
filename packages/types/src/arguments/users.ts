import { requireInteger, wrongType } from './scalars.js'

/** The user ids that are let in: this process's own, and those that are named. @throws TypeError, RangeError */
export function usersWith(others: unknown, api: string): readonly number[] {
  if (others !== undefined && !Array.isArray(others)) throw wrongType(api, 'users', 'an array of user ids', others)
  const named: readonly unknown[] = others ?? []
  const users = named.map((user, index) => requireInteger(user, api, `users[${index}]`, 0, 2 ** 32 - 2))
  const own = process.geteuid?.()
  return own === undefined ? users : [...new Set([own, ...users])]
}
