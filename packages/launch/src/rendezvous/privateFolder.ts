import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { RendezvousError } from '../errors.js'
import type { Target } from './attempt.js'

/** The longest path that every system takes for a socket. */
const longestSocketPath = 100

/**
 * A folder that only this user can enter, under a name that all ranks of a job on this machine come to by themselves.
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

  /** Makes it, with a secret in it; what an earlier job has left under this name goes. @throws RendezvousError */
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

  /** Socket and secret, once rank 0 has made them. @throws RendezvousError where the folder is not only this user's. */
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

  /** In a folder that others can write to, anybody could have been first to make one of this name. */
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

/** A container may run as a user whom its system does not know by name. */
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
