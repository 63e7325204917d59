import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nvrtc } from '@shoal/nvrtc-sys'

/** Files that NVRTC reads in addition to its own. */
const companions = /^(lib)?nvrtc-builtins/

interface Identity {
  /** The file, with links resolved. */
  readonly path: string
  readonly text: string
}

let known: Identity | { readonly problem: string } | undefined

/**
 * Identifies the NVRTC that will be loaded, by its file and that of its device functions.
 *
 * Uses inode, size and times of each file. The change time cannot be set back, so different contents have different
 * identities. Nothing is loaded. The identity is read once, at the first look-up: a library loaded later is at least as
 * new, and {@link isAsIdentified} detects another file. `undefined` if it cannot be determined.
 */
export function libraryIdentity(): string | undefined {
  known ??= identify()
  return 'text' in known ? known.text : undefined
}

/** Returns the file of {@link libraryIdentity}, or else of the loaded library. @throws LibraryNotFoundError */
export function libraryPath(): string {
  known ??= identify()
  return 'path' in known ? known.path : nvrtc.load().path
}

/** Returns why the identity cannot be determined. */
export function identityProblem(): string | undefined {
  return known !== undefined && 'problem' in known ? known.problem : undefined
}

/** True if the loaded library is the one that {@link libraryIdentity} identified. */
export function isAsIdentified(): boolean {
  try {
    return known !== undefined && 'path' in known && realpathSync(nvrtc.load().path) === known.path
  } catch {
    return false // moved away meanwhile
  }
}

function identify(): Identity | { readonly problem: string } {
  const isLoaded = nvrtc.isLoaded
  try {
    const located = nvrtc.locate() ?? nvrtc.load()
    const path = realpathSync(located.path)
    // For a file replaced after loading, this would compute the identity of the new file.
    if ((isLoaded || located.step === 'loaded') && !isMapped(path))
      return { problem: `${path} was replaced since it was loaded` }
    const folder = dirname(path)
    const beside = readdirSync(folder).filter((name) => companions.test(name))
    const facts = [path, ...beside.sort().map((name) => join(folder, name))].map((file) => {
      const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true })
      return [file, ino, size, mtimeNs, ctimeNs].join(' ')
    })
    return { path, text: facts.join('\n') }
  } catch (error) {
    // The folder cannot be listed, or a file was removed. The caller handles a missing NVRTC.
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error
    return { problem: (error as Error).message }
  }
}

/** True if the process has mapped this file, not an earlier one at its path. Checked on Linux only. */
function isMapped(path: string): boolean {
  if (process.platform !== 'linux') return true
  const { ino } = statSync(path, { bigint: true })
  const lines = readFileSync('/proc/self/maps', 'utf8').split('\n')
  return lines.some((line) => line.endsWith(` ${path}`) && line.split(/ +/)[4] === String(ino))
}
