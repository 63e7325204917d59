/** An error as Node's own system calls throw it: with `code`, `errno` and `syscall`. */
export function systemError(code: string, errno: number, syscall: string, path?: string): NodeJS.ErrnoException {
  const where = path === undefined ? '' : ` ${JSON.stringify(path)}`
  const error: NodeJS.ErrnoException = new Error(`${syscall}${where}: ${code}`)
  error.code = code
  error.errno = errno
  error.syscall = syscall
  if (path !== undefined) error.path = path
  return error
}
