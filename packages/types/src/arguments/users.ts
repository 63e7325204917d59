import { requireInteger, requireList } from './scalars.js'

/** Returns the accepted user ids: this process's own and the given ones. @throws TypeError, RangeError */
export function usersWith(others: unknown, api: string): readonly number[] {
  const named = others === undefined ? [] : requireList(others as unknown[], api, 'users', 'an array of user ids')
  const users = named.map((user, index) => requireInteger(user, api, `users[${index}]`, 0, 2 ** 32 - 2))
  const own = process.geteuid?.()
  return own === undefined ? users : [...new Set([own, ...users])]
}
