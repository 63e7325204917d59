import { lstatSync, mkdirSync, type Stats } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'

/** The user's folder of results: `SHOAL_CACHE_FOLDER`, or `shoal` in the folder that the system has for such. */
export function defaultFolder(environment: NodeJS.ProcessEnv = process.env): string {
  const named = environment['SHOAL_CACHE_FOLDER']
  if (named !== undefined && named !== '') return named
  const base = environment['XDG_CACHE_HOME'] || environment['LOCALAPPDATA']
  return join(base !== undefined && isAbsolute(base) ? base : join(homedir(), '.cache'), 'shoal')
}

/**
 * Why a folder is none to take code from, or undefined: code is run that others could have put there. It is made where
 * it is not there. A link in its place is refused too: it may lead to what somebody else can write.
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
 * Node's own way to make the folders above as well does not end where a file system, such as /proc, refuses one as not
 * there.
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

/** Why a file or a folder is not to be trusted, or undefined. */
export function foreign(path: string, { uid, mode }: Stats): string | undefined {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  if (uid !== user) return `${path} belongs to user ${uid}, and this process runs as ${user}`
  return (mode & 0o022) === 0 ? undefined : `${path} can be written by others`
}
