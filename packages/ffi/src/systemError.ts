import { SystemError } from '@shoal/types'

/** Returns the error of a failed system call, with an error like Node's as its cause. */
export function systemError(api: string, syscall: string, code: string, path?: string): SystemError {
  const { constants } = process.getBuiltinModule('node:os')
  const cause: NodeJS.ErrnoException = Object.assign(new Error(`${syscall}: ${code}`), {
    code,
    errno: -(Object.entries(constants.errno).find(([name]) => name === code)?.[1] ?? 0),
    syscall,
  })
  return new SystemError({ api, cause, ...(path === undefined ? {} : { parameter: 'path', value: path }) })
}
