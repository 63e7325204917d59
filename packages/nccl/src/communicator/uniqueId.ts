import { ncclGetUniqueId } from '@shoal/nccl-sys'
import {
  inspectKey,
  inspectLine,
  isInstance,
  loadedFrom,
  made,
  PublicObject,
  requireMade,
  wrongType,
} from '@shoal/types'
import { checkNccl } from '../errors.js'
import type { OwnBytes } from '../ownBytes.js'

const byteLength = 128

/**
 * The id with which the ranks of one communicator find each other (`ncclUniqueId`): 128 opaque bytes. One rank creates
 * it and sends the same bytes to all other ranks in any way.
 */
export class UniqueId extends PublicObject {
  /** Number of bytes of an id: 128. */
  static readonly byteLength: number = byteLength
  readonly #bytes: Uint8Array

  /** @internal */
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** False for an object that only has the prototype. */
  static override [Symbol.hasInstance](value: unknown): value is UniqueId {
    return typeof value === 'object' && value !== null && #bytes in value
  }

  private constructor(bytes: Uint8Array, key: typeof made) {
    requireMade(key, 'UniqueId', 'UniqueId.create or UniqueId.fromBytes', 'symbol')
    super(Buffer.from(bytes).toString('base64'))
    this.#bytes = bytes
  }

  /**
   * Creates a new id (`ncclGetUniqueId`). This process then listens for the other ranks. The process must live until
   * all ranks have joined, and all ranks must be able to reach its address (`NCCL_SOCKET_IFNAME`).
   *
   * @example
   * ```ts
   * const id = UniqueId.create()
   * for (const child of children) child.send({ id: id.toString() })
   * ```
   *
   * @throws StatusError when NCCL finds no usable network interface.
   */
  static create(): UniqueId {
    const bytes = new Uint8Array(byteLength)
    checkNccl(ncclGetUniqueId(bytes), 'ncclGetUniqueId')
    return new UniqueId(bytes, made)
  }

  /** Creates an id from a copy of 128 bytes. @throws TypeError, RangeError for anything else. */
  static fromBytes(bytes: Uint8Array): UniqueId {
    if (!isInstance(bytes, Uint8Array)) throw wrongType('UniqueId.fromBytes', 'bytes', 'a Uint8Array', bytes)
    if (bytes.byteLength !== byteLength) {
      throw new RangeError(`UniqueId.fromBytes: bytes must be ${byteLength} bytes, not ${bytes.byteLength}`)
    }
    return new UniqueId(Uint8Array.from(bytes), made)
  }

  /** Parses the base64 text of `toJSON()` and `toString()`. @throws TypeError, RangeError for other text. */
  static fromBase64(text: string): UniqueId {
    if (typeof text !== 'string') throw wrongType('UniqueId.fromBase64', 'text', 'a string', text)
    const bytes = Buffer.from(text, 'base64')
    // Buffer skips characters that are not base64. Encoding the bytes again finds such text.
    if (bytes.byteLength !== byteLength || bytes.toString('base64') !== text) {
      throw new RangeError(`UniqueId.fromBase64: text must be the base64 form of ${byteLength} bytes`)
    }
    return new UniqueId(Uint8Array.from(bytes), made)
  }

  /** Returns a copy of the 128 bytes. */
  toBytes(): OwnBytes {
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

  /** Whether `other` is an id with the same bytes. */
  equals(other: unknown): boolean {
    return isInstance(other, UniqueId as never) && Buffer.compare(this.#bytes, (other as UniqueId).#bytes) === 0
  }

  get [Symbol.toStringTag](): string {
    return 'UniqueId'
  }

  /** Returns one line with the start of the id. */
  override [inspectKey](): string {
    return inspectLine('UniqueId', { bytes: `${this.toString().slice(0, 16)}…` })
  }
}
