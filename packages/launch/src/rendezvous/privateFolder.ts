import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { RendezvousError } from '../errors.js'
import type { Target } from './attempt.js'

/** Longest socket path that every system accepts. */
const longestSocketPath = 100

/**
 * A folder that only this user can enter.
 *
 * All ranks of a job on this machine compute the same name.
 *
 * It holds the socket of the rendezvous and its secret.
 */
export class PrivateFolder {
  readonly #base: string
  readonly path: string

  constructor(jobId: string) {
    const name = `shoal-${ownUser()}`
    const hash = createHash('sha256').update(jobId).digest('hex').slice(0, 24)
    const runtime = process.env['XDG_RUNTIME_DIR']
    const parent = runtime !== undefined && isFolder(runtime) ? runtime : tmpdir()
    const base = join(parent, name)
    this.#base = join(base, hash, 'socket').length > longestSocketPath ? join('/tmp', name) : base
    this.path = join(this.#base, hash)
  }

  get socket(): string {
    return join(this.path, 'socket')
  }

  get #secretFile(): string {
    return join(this.path, 'secret')
  }

  /** Creates the folder with a secret; removes a folder left by an earlier job. @throws RendezvousError */
  create(secret: string): void {
    try {
      mkdirSync(this.#base, { mode: 0o700, recursive: true })
      this.#requirePrivate()
      rmSync(this.path, { recursive: true, force: true })
      mkdirSync(this.path, { mode: 0o700 })
      writeFileSync(this.#secretFile, secret, { mode: 0o600, flag: 'wx' })
    } catch (cause) {
      throw failure('cannot make a folder for the rendezvous', cause)
    }
  }

  /** Returns socket and secret, when rank 0 has created them. @throws RendezvousError if others can use the folder */
  target(): Target | undefined {
    try {
      if (lstatSync(this.#base, { throwIfNoEntry: false }) === undefined) return undefined
      this.#requirePrivate()
      return { address: { kind: 'unix', path: this.socket }, secret: readFileSync(this.#secretFile) }
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw failure('cannot read the secret of the rendezvous', cause)
    }
  }

  /** Requires a private folder: in a folder that others can write to, another user may have created this name first. */
  #requirePrivate(): void {
    const found = lstatSync(this.#base)
    const problem = !found.isDirectory()
      ? 'is no folder'
      : found.uid !== ownUser()
        ? 'belongs to another user'
        : (found.mode & 0o077) !== 0
          ? 'can be entered by others'
          : undefined
    if (problem === undefined) return
    throw new RendezvousError(
      `${this.#base} ${problem}, so the rendezvous would not be private. Remove it, or point TMPDIR or XDG_RUNTIME_DIR elsewhere.`,
    )
  }
}

function failure(what: string, cause: unknown): RendezvousError {
  if (cause instanceof RendezvousError) return cause
  return new RendezvousError(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
}

/** Returns the user id first, because a container's user may have no name. */
function ownUser(): number {
  return process.getuid?.() ?? userInfo().uid
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}
