import { lstatSync, mkdirSync, type Stats } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'

/** Returns the user's cache folder: `SHOAL_CACHE_FOLDER`, or `shoal` in the system's cache folder. */
export function defaultFolder(environment: NodeJS.ProcessEnv = process.env): string {
  const named = environment['SHOAL_CACHE_FOLDER']
  if (named !== undefined && named !== '') return named
  const base = environment['XDG_CACHE_HOME'] || environment['LOCALAPPDATA']
  return join(base !== undefined && isAbsolute(base) ? base : join(homedir(), '.cache'), 'shoal')
}

/**
 * Returns why cached code in a folder cannot be trusted, or undefined. Creates a missing folder.
 *
 * Cached code is executed, so others must not be able to write it. Refuses a link too, because others may be able to
 * write to its target.
 */
export function folderProblem(folder: string): string | undefined {
  if (!isAbsolute(folder)) return `${folder} is no absolute path`
  try {
    makeFolder(folder)
    const stats = lstatSync(folder)
    if (!stats.isDirectory()) return `${folder} is no folder`
    return foreign(folder, stats)
  } catch (error) {
    return `${folder}: ${(error as Error).message}`
  }
}

/**
 * Creates a folder and its parents. Node's recursive mkdir does not end on file systems such as /proc that report
 * ENOENT.
 */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, 0o700)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return
    if (code !== 'ENOENT' || lstatSync(dirname(folder), { throwIfNoEntry: false }) !== undefined) throw error
    makeFolder(dirname(folder))
    mkdirSync(folder, 0o700)
  }
}

/** Returns why a file or folder cannot be trusted, or undefined. */
export function foreign(path: string, { uid, mode }: Stats): string | undefined {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  if (uid !== user) return `${path} belongs to user ${uid}, and this process runs as ${user}`
  return (mode & 0o022) === 0 ? undefined : `${path} can be written by others`
}
