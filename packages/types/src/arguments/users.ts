import { requireInteger, requireList } from './scalars.js'

/** The user ids that are let in: this process's own, and those that are named. @throws TypeError, RangeError */
export function usersWith(others: unknown, api: string): readonly number[] {
  const named = others === undefined ? [] : requireList(others as unknown[], api, 'users', 'an array of user ids')
  const users = named.map((user, index) => requireInteger(user, api, `users[${index}]`, 0, 2 ** 32 - 2))
  const own = process.geteuid?.()
  return own === undefined ? users : [...new Set([own, ...users])]
}
