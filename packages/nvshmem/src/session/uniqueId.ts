import { nvshmemx_get_uniqueid, nvshmemx_uniqueid_t, structVersion } from '@shoal/nvshmem-sys'
import {
  inspectKey,
  inspectLine,
  isInstance,
  loadedFrom,
  made,
  outOfRange,
  PublicObject,
  requireMade,
  wrongType,
} from '@shoal/types'
import { checkNvshmem } from '../errors.js'
import { environmentOfNvshmem } from '../workarounds/environment.js'

const byteLength: number = nvshmemx_uniqueid_t.size
const version = structVersion(byteLength)

/**
 * The id by which the PEs of one session find each other (`nvshmemx_uniqueid_t`): 128 bytes.
 *
 * One process creates it and sends its bytes to all others over any channel.
 *
 * @example
 * ```ts
 * const id = UniqueId.fromBytes(await job.share('nvshmem', () => UniqueId.create().toBytes()))
 * const session = await Session.init({ device, rank: job.rank, worldSize: job.worldSize, id })
 * ```
 */
export class UniqueId extends PublicObject {
  /** Bytes of an id: 128. */
  static readonly byteLength: number = byteLength
  readonly #bytes: Uint8Array

  /** @internal */
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** @internal */
  static override [Symbol.hasInstance](value: unknown): value is UniqueId {
    return typeof value === 'object' && value !== null && #bytes in value
  }

  private constructor(bytes: Uint8Array, key: typeof made) {
    requireMade(key, 'UniqueId', 'UniqueId.create or UniqueId.fromBytes', 'symbol')
    super(Buffer.from(bytes).toString('base64'))
    this.#bytes = bytes
  }

  /**
   * Makes a new id (`nvshmemx_get_uniqueid`).
   *
   * This process then listens for the other processes, so it must live until all of them have joined, and they must be
   * able to reach its address. `NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME` names the interface. Set it before the process
   * starts or, on the main thread, before this call.
   *
   * @throws StatusError if NVSHMEM finds no usable network interface.
   */
  static create(): UniqueId {
    const bytes = new Uint8Array(byteLength)
    new DataView(bytes.buffer).setInt32(0, version, true)
    environmentOfNvshmem()
    checkNvshmem(nvshmemx_get_uniqueid(bytes), 'nvshmemx_get_uniqueid')
    return new UniqueId(bytes, made)
  }

  /**
   * Makes an id from a copy of 128 bytes.
   *
   * @throws TypeError for a value that is not a Uint8Array, RangeError for another length and for other bytes, such as
   * an id of NCCL.
   */
  static fromBytes(bytes: Uint8Array): UniqueId {
    const api = 'UniqueId.fromBytes'
    if (!isInstance(bytes, Uint8Array)) throw wrongType(api, 'bytes', 'a Uint8Array', bytes)
    return new UniqueId(checked(Uint8Array.from(bytes), api, 'bytes'), made)
  }

  /**
   * Parses an id in base64, as `toJSON()` and `toString()` write it.
   *
   * @throws TypeError for a value that is not a string, RangeError for text that is not the base64 of an id.
   */
  static fromBase64(text: string): UniqueId {
    const api = 'UniqueId.fromBase64'
    if (typeof text !== 'string') throw wrongType(api, 'text', 'a string', text)
    const bytes = Buffer.from(text, 'base64')
    // Buffer skips invalid characters, so compare with the text encoded again.
    if (bytes.toString('base64') !== text) throw outOfRange(api, 'text', 'base64', text)
    return new UniqueId(checked(Uint8Array.from(bytes), api, 'text'), made)
  }

  /** Returns a copy of the 128 bytes. */
  toBytes(): Uint8Array {
    return Uint8Array.from(this.#bytes)
  }

  /** Returns the id as base64, for JSON, an environment variable or a message to a child process. */
  override toString(): string {
    return Buffer.from(this.#bytes).toString('base64')
  }

  /** Returns the id as base64, for `JSON.stringify`. */
  override toJSON(): string {
    return this.toString()
  }

  /** True if `other` is an id with the same bytes. */
  equals(other: unknown): boolean {
    return isInstance(other, UniqueId as never) && Buffer.compare(this.#bytes, (other as UniqueId).#bytes) === 0
  }

  get [Symbol.toStringTag](): string {
    return 'UniqueId'
  }

  /** @internal */
  override [inspectKey](): string {
    return inspectLine('UniqueId', { base64: this.toString() })
  }
}

function checked(bytes: Uint8Array, api: string, name: string): Uint8Array {
  if (bytes.byteLength !== byteLength) {
    throw new RangeError(`${api}: ${name} must be the ${byteLength} bytes of an id, not ${bytes.byteLength}`)
  }
  const found = new DataView(bytes.buffer, bytes.byteOffset).getInt32(0, true)
  // Revision and size: another NVSHMEM may have another revision, but not another size.
  if ((found & 0xffff) === byteLength && found >= 0x1_0000) return bytes
  throw new RangeError(`${api}: ${name} must be an id of NVSHMEM, not other ${byteLength} bytes`)
}
