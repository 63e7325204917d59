import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs'

/**
 * The content of a regular file; `'absent'` if there is none that this user can read, `'special'` for a pipe, a socket
 * or a device. Opening one of those can block the thread for ever or have effects of its own, so only a regular file is
 * opened.
 */
export function readRegularFile(path: string): Buffer | 'absent' | 'special' {
  try {
    const stats = statSync(path)
    if (stats.isDirectory()) return 'absent'
    if (!stats.isFile()) return 'special'
    // A pipe may have taken its place since, and some files of /proc wait for content.
    const descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      return fstatSync(descriptor).isFile() ? readFileSync(descriptor) : 'special'
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return 'absent'
  }
}
