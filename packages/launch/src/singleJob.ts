import { AbortedError, DisposedError } from '@shoal/types'
import { RendezvousTimeoutError } from './errors.js'
import type { Job, Launcher, RendezvousOptions, ShareOptions } from './job.js'
import { checkName, checkRoot, checkValue, checkWait } from './options.js'

/** A job of one process, which needs no meeting point. */
export class SingleJob implements Job {
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

  /** @param place - what a launcher has said of this only rank */
  constructor(
    place?: {
      readonly launcher: Launcher
      readonly localRank: number | undefined
      readonly nodeRank: number | undefined
    },
    deviceOrdinal?: number,
  ) {
    this.launcher = place?.launcher ?? 'single'
    this.localRank = place?.localRank ?? 0
    this.nodeRank = place?.nodeRank ?? 0
    this.deviceOrdinal = deviceOrdinal ?? this.localRank
  }

  async share(
    name: string,
    make: () => Uint8Array | Promise<Uint8Array>,
    options: ShareOptions = {},
  ): Promise<Uint8Array> {
    checkName(name, 'share')
    if (typeof make !== 'function') throw new TypeError('share: make must be a function')
    this.#require(`share '${name}'`, options)
    checkRoot(options.root, 1, 'share')
    const bytes = await make()
    checkValue(bytes, `share '${name}', what make returned`)
    return Uint8Array.from(bytes)
  }

  async gather(name: string, bytes: Uint8Array, options: RendezvousOptions = {}): Promise<Uint8Array[]> {
    checkName(name, 'gather')
    checkValue(bytes, 'gather')
    this.#require(`gather '${name}'`, options)
    return [Uint8Array.from(bytes)]
  }

  async barrier(name: string, options: RendezvousOptions = {}): Promise<void> {
    checkName(name, 'barrier')
    this.#require(`barrier '${name}'`, options)
  }

  async set(key: string, bytes: Uint8Array): Promise<void> {
    checkName(key, 'set')
    checkValue(bytes, 'set')
    this.#require(`set '${key}'`, {})
    this.#values.set(key, Uint8Array.from(bytes))
    for (const tell of [...(this.#waiting.get(key) ?? [])]) tell(undefined, bytes)
  }

  async get(key: string, options: RendezvousOptions = {}): Promise<Uint8Array> {
    checkName(key, 'get')
    const operation = `get '${key}'`
    this.#require(operation, options)
    const value = this.#values.get(key) ?? (await this.#later(key, operation, options))
    return Uint8Array.from(value)
  }

  async survivors(options: RendezvousOptions = {}): Promise<Job> {
    this.#require('survivors', options)
    await this.dispose()
    return new SingleJob(this, this.deviceOrdinal)
  }

  async dispose(): Promise<void> {
    if (this.#isDisposed) return
    this.#isDisposed = true
    for (const waiting of [...this.#waiting.values()]) for (const tell of [...waiting]) tell(new DisposedError('Job'))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  get [Symbol.toStringTag](): string {
    return 'Job'
  }

  /** A value that another part of this process has yet to set. */
  #later(key: string, operation: string, options: RendezvousOptions): Promise<Uint8Array> {
    const limit = checkWait(options, operation)
    const { signal } = options
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
      const timer = setTimeout(
        () => tell(new RendezvousTimeoutError(operation, limit, [])),
        Math.min(limit, 2 ** 31 - 1),
      )
      waiting.add(tell)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  #require(operation: string, options: RendezvousOptions): void {
    if (this.#isDisposed) throw new DisposedError({ object: 'Job', operation })
    checkWait(options, operation)
    const { signal } = options
    if (signal?.aborted === true) throw new AbortedError({ operation, cause: signal.reason })
  }
}
