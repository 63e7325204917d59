import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nvrtc } from '@shoal/nvrtc-sys'

/** What NVRTC reads beside its own file. */
const companions = /^(lib)?nvrtc-builtins/

interface Identity {
  /** The file, without links. */
  readonly path: string
  readonly text: string
}

let known: Identity | { readonly problem: string } | undefined

/**
 * What tells one NVRTC from another: its file and that of its functions for devices, each with number, size and times.
 * The time of the last change of a file nobody can set back, so contents that differ have another identity. Nothing is
 * loaded for it. It is read once and as early as there is something to look up: what the process loads later is at
 * least as new, and {@link isAsIdentified} tells if it was another file. `undefined` where it cannot be known.
 */
export function libraryIdentity(): string | undefined {
  known ??= identify()
  return 'text' in known ? known.text : undefined
}

/** The file that {@link libraryIdentity} is about, or the loaded one. @throws LibraryNotFoundError */
export function libraryPath(): string {
  known ??= identify()
  return 'path' in known ? known.path : nvrtc.load().path
}

/** Why it cannot be known. */
export function identityProblem(): string | undefined {
  return known !== undefined && 'problem' in known ? known.problem : undefined
}

/** Whether the library that was loaded is the one that {@link libraryIdentity} tells of. */
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
    // One that was replaced since it was loaded would be taken for the new one.
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
    // A folder that this user cannot list, or a file that went away. That there is no NVRTC is the caller's to know.
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error
    return { problem: (error as Error).message }
  }
}

/** Whether the process has this file, and not one that was at its path before, in memory. Known on Linux. */
function isMapped(path: string): boolean {
  if (process.platform !== 'linux') return true
  const { ino } = statSync(path, { bigint: true })
  const lines = readFileSync('/proc/self/maps', 'utf8').split('\n')
  return lines.some((line) => line.endsWith(` ${path}`) && line.split(/ +/)[4] === String(ino))
}
