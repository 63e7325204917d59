import { setMaxListeners } from 'node:events'
import { DisposedError, describeValue, inspectKey, PublicObject, requireFunction } from '@shoal/types'
import { RanksLostError } from './errors.js'
import { inspectJob, type Job, type Launcher, type RendezvousOptions, type ShareOptions } from './job.js'
import { readShare, readWait, requireName, requireValue, type Wait } from './options.js'
import type { Connection } from './rendezvous/connection.js'
import type { Header, Message } from './rendezvous/frames.js'

/** Position of a rank in its job. */
export interface Placement {
  readonly launcher: Launcher
  readonly localRank: number
  readonly localWorldSize: number
  readonly nodeRank: number
  readonly deviceOrdinal: number
  /** Number of the machine, by rank. */
  readonly nodes: readonly number[]
}

/** A job with a rendezvous. */
export class ConnectedJob extends PublicObject implements Job {
  readonly #connection: Connection
  readonly #placement: Placement
  readonly #space: number
  readonly #lost = new AbortController()
  #lostRanks: readonly number[] = []
  /** Set when another job took over the connection, or it is closed. */
  #end: 'disposed' | 'succeeded' | undefined
  readonly rank: number
  readonly worldSize: number

  constructor(connection: Connection, placement: Placement, space: number, rank: number, worldSize: number) {
    super()
    this.#connection = connection
    this.#placement = placement
    this.#space = space
    this.rank = rank
    this.worldSize = worldSize
    // Any number of waits may use this signal.
    setMaxListeners(0, this.#lost.signal)
    connection.listen(
      (event) => this.#received(event),
      (error) => this.#lost.abort(error),
    )
  }

  get localRank(): number {
    return this.#placement.localRank
  }

  get localWorldSize(): number {
    return this.#placement.localWorldSize
  }

  get nodeRank(): number {
    return this.#placement.nodeRank
  }

  get deviceOrdinal(): number {
    return this.#placement.deviceOrdinal
  }

  get launcher(): Launcher {
    return this.#placement.launcher
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  get lostRanks(): readonly number[] {
    return this.#lostRanks
  }

  async share(name: string, make: () => Uint8Array | Promise<Uint8Array>, options?: ShareOptions): Promise<Uint8Array> {
    requireName(name, 'Job.share')
    requireFunction(make, 'Job.share', 'make')
    const operation = `share '${name}'`
    const { root, ...wait } = readShare(options, this.worldSize)
    const header = { op: 'share', name, root }
    if (this.rank !== root) return (await this.#request(operation, header, undefined, wait)).body
    this.#requireAlive(operation)
    let bytes: Uint8Array
    try {
      bytes = await make()
      requireValue(bytes, 'Job.share', 'what make returns')
      bytes = Uint8Array.from(bytes)
    } catch (error) {
      const failed = `rank ${root} could not make it: ${error instanceof Error ? error.message : describeValue(error)}`
      // Otherwise the other ranks would wait until their limit. An error of `make` takes precedence over a failed
      // report.
      await this.#request(operation, { ...header, failed: failed.slice(0, 4096) }, undefined, readWait({}, '')).catch(
        () => undefined,
      )
      throw error
    }
    await this.#request(operation, header, bytes, wait)
    return bytes
  }

  async gather(name: string, bytes: Uint8Array, options?: RendezvousOptions): Promise<Uint8Array[]> {
    requireName(name, 'Job.gather')
    requireValue(bytes, 'Job.gather', 'bytes')
    const { header, body } = await this.#request(
      `gather '${name}'`,
      { op: 'gather', name },
      Uint8Array.from(bytes),
      readWait(options, 'Job.gather'),
    )
    let start = 0
    return (header['lengths'] as number[]).map((length) => {
      start += length
      return body.slice(start - length, start)
    })
  }

  async barrier(name: string, options?: RendezvousOptions): Promise<void> {
    requireName(name, 'Job.barrier')
    await this.#request(`barrier '${name}'`, { op: 'barrier', name }, undefined, readWait(options, 'Job.barrier'))
  }

  async set(key: string, bytes: Uint8Array): Promise<void> {
    requireName(key, 'Job.set', 'key')
    requireValue(bytes, 'Job.set', 'bytes')
    await this.#request(`set '${key}'`, { op: 'set', name: key }, Uint8Array.from(bytes), readWait({}, ''))
  }

  async get(key: string, options?: RendezvousOptions): Promise<Uint8Array> {
    requireName(key, 'Job.get', 'key')
    return (await this.#request(`get '${key}'`, { op: 'get', name: key }, undefined, readWait(options, 'Job.get'))).body
  }

  async survivors(options?: RendezvousOptions): Promise<Job> {
    const wait = readWait(options, 'Job.survivors')
    const { header } = await this.#request('survivors', { op: 'survivors' }, undefined, wait)
    const members = header['members'] as number[]
    this.#end = 'succeeded'
    const nodes = members.map((member) => this.#placement.nodes[member] ?? 0)
    const localWorldSize = nodes.filter((node) => node === this.#placement.nodes[this.rank]).length
    const placement = { ...this.#placement, nodes, localWorldSize }
    const rank = members.indexOf(this.rank)
    return new ConnectedJob(this.#connection, placement, header['space'] as number, rank, members.length)
  }

  async dispose(): Promise<void> {
    if (this.#end === 'succeeded') return
    this.#end = 'disposed'
    await this.#connection.close(new DisposedError('Job'))
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

  async #request(operation: string, header: Header, body: Uint8Array | undefined, wait: Wait): Promise<Message> {
    this.#requireAlive(operation)
    return this.#connection.request({ ...header, space: this.#space }, body, { operation, ...wait })
  }

  #requireAlive(operation: string): void {
    if (this.#end === 'disposed') throw new DisposedError({ object: 'Job', operation })
    if (this.#end === 'succeeded') {
      throw new DisposedError({
        object: 'Job',
        operation: `${operation}: survivors() has given its place to another job`,
      })
    }
  }

  #received(event: Header): void {
    if (event['event'] !== 'lost' || event['space'] !== this.#space) return
    const ranks = event['ranks'] as number[]
    this.#lostRanks = [...new Set([...this.#lostRanks, ...ranks])].sort((a, b) => a - b)
    this.#lost.abort(new RanksLostError(this.#lostRanks))
  }
}
