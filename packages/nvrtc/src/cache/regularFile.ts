import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs'

/**
 * Reads a regular file; `'absent'` if this user cannot read one, `'special'` for a pipe, socket or device.
 *
 * Opening a special file can block the thread forever or have side effects, so only regular files are opened.
 */
export function readRegularFile(path: string): Buffer | 'absent' | 'special' {
  try {
    const stats = statSync(path)
    if (stats.isDirectory()) return 'absent'
    if (!stats.isFile()) return 'special'
    // A pipe may have replaced the file since, and reads of some /proc files block.
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
