import {
  AbortedError,
  DisposedError,
  doneNow,
  inspectKey,
  PublicObject,
  requireFunction,
  settledNow,
} from '@shoal/types'
import { RendezvousTimeoutError } from './errors.js'
import { inspectJob, type Job, type Launcher, type RendezvousOptions, type ShareOptions } from './job.js'
import { readShare, readWait, requireName, requireValue, type Wait } from './options.js'

/** A job of one process, without a rendezvous. */
export class SingleJob extends PublicObject implements Job {
  readonly rank = 0
  readonly worldSize = 1
  readonly localRank: number
  readonly localWorldSize = 1
  readonly nodeRank: number
  readonly deviceOrdinal: number
  readonly launcher: Launcher
  readonly lost: AbortSignal = new AbortController().signal
  readonly lostRanks: readonly number[] = []
  readonly #values = new Map<string, Uint8Array>()
  readonly #waiting = new Map<string, Set<(error: unknown, value?: Uint8Array) => void>>()
  #isDisposed = false

  /** @param place - the launcher's values for this only rank */
  constructor(
    place?: {
      readonly launcher: Launcher
      readonly localRank: number | undefined
      readonly nodeRank: number | undefined
    },
    deviceOrdinal?: number,
  ) {
    super()
    this.launcher = place?.launcher ?? 'single'
    this.localRank = place?.localRank ?? 0
    this.nodeRank = place?.nodeRank ?? 0
    this.deviceOrdinal = deviceOrdinal ?? this.localRank
  }

  async share(name: string, make: () => Uint8Array | Promise<Uint8Array>, options?: ShareOptions): Promise<Uint8Array> {
    requireName(name, 'Job.share')
    requireFunction(make, 'Job.share', 'make')
    this.#requireAlive(`share '${name}'`, readShare(options, 1))
    const bytes = await make()
    requireValue(bytes, 'Job.share', 'what make returns')
    return settledNow(Uint8Array.from(bytes))
  }

  async gather(name: string, bytes: Uint8Array, options?: RendezvousOptions): Promise<Uint8Array[]> {
    requireName(name, 'Job.gather')
    requireValue(bytes, 'Job.gather', 'bytes')
    this.#requireAlive(`gather '${name}'`, readWait(options, 'Job.gather'))
    return settledNow([Uint8Array.from(bytes)])
  }

  async barrier(name: string, options?: RendezvousOptions): Promise<void> {
    requireName(name, 'Job.barrier')
    this.#requireAlive(`barrier '${name}'`, readWait(options, 'Job.barrier'))
    return doneNow()
  }

  async set(key: string, bytes: Uint8Array): Promise<void> {
    requireName(key, 'Job.set', 'key')
    requireValue(bytes, 'Job.set', 'bytes')
    this.#requireAlive(`set '${key}'`)
    this.#values.set(key, Uint8Array.from(bytes))
    for (const tell of [...(this.#waiting.get(key) ?? [])]) tell(undefined, bytes)
    return doneNow()
  }

  async get(key: string, options?: RendezvousOptions): Promise<Uint8Array> {
    requireName(key, 'Job.get', 'key')
    const operation = `get '${key}'`
    const wait = readWait(options, 'Job.get')
    this.#requireAlive(operation, wait)
    const value = this.#values.get(key) ?? (await this.#later(key, operation, wait))
    return settledNow(Uint8Array.from(value))
  }

  async survivors(options?: RendezvousOptions): Promise<Job> {
    this.#requireAlive('survivors', readWait(options, 'Job.survivors'))
    await this.dispose()
    return settledNow(new SingleJob(this, this.deviceOrdinal))
  }

  async dispose(): Promise<void> {
    if (this.#isDisposed) return
    this.#isDisposed = true
    for (const waiting of [...this.#waiting.values()]) for (const tell of [...waiting]) tell(new DisposedError('Job'))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  override [inspectKey](): string {
    return inspectJob(this)
  }

  get [Symbol.toStringTag](): string {
    return 'Job'
  }

  /** Waits for a value that another part of this process will set. */
  #later(key: string, operation: string, { timeout, signal }: Wait): Promise<Uint8Array> {
    const waiting = this.#waiting.get(key) ?? new Set()
    this.#waiting.set(key, waiting)
    return new Promise((resolve, reject) => {
      const tell = (error: unknown, value?: Uint8Array): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        waiting.delete(tell)
        if (waiting.size === 0) this.#waiting.delete(key)
        if (value === undefined) reject(error)
        else resolve(value)
      }
      const onAbort = (): void => tell(new AbortedError({ operation, cause: signal?.reason }))
      const timer = setTimeout(() => tell(new RendezvousTimeoutError(operation, timeout, [])), timeout)
      waiting.add(tell)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  #requireAlive(operation: string, { signal }: Partial<Wait> = {}): void {
    if (this.#isDisposed) throw new DisposedError({ object: 'Job', operation })
    if (signal?.aborted === true) throw new AbortedError({ operation, cause: signal.reason })
  }
}
