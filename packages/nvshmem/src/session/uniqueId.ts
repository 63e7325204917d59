import { nvshmemx_get_uniqueid, nvshmemx_uniqueid_t, structVersion } from '@shoal/nvshmem-sys'
import { checkNvshmem } from '../errors.js'
import { environmentOfNvshmem } from '../workarounds/environment.js'

const byteLength: number = nvshmemx_uniqueid_t.size
const version = structVersion(byteLength)

/**
 * The id by which the PEs of one session find each other (`nvshmemx_uniqueid_t`): 128 bytes.
 * One process creates it, every process gets the same bytes by whatever way the program has.
 */
export class UniqueId {
  /** 128. */
  static readonly byteLength: number = byteLength
  readonly #bytes: Uint8Array

  /** @internal */
  static _is(value: unknown): value is UniqueId {
    return typeof value === 'object' && value !== null && #bytes in value
  }

  private constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /**
   * Makes a new id (`nvshmemx_get_uniqueid`). This process then listens for the others, so it has to live until they have
   * all joined, and its address has to be reachable for them: `NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME` names the interface and
   * has to be set before the process starts or, on the main thread, before this call.
   *
   * @throws StatusError when NVSHMEM finds no usable network interface.
   */
  static create(): UniqueId {
    const bytes = new Uint8Array(byteLength)
    new DataView(bytes.buffer).setInt32(0, version, true)
    environmentOfNvshmem()
    checkNvshmem(nvshmemx_get_uniqueid(bytes), 'nvshmemx_get_uniqueid')
    return new UniqueId(bytes)
  }

  /**
   * The id in these 128 bytes; they are copied.
   *
   * @throws RangeError for another length, and for bytes that are no id of NVSHMEM (of NCCL, perhaps).
   */
  static fromBytes(bytes: Uint8Array): UniqueId {
    if (!(bytes instanceof Uint8Array)) throw new TypeError('UniqueId.fromBytes: bytes must be a Uint8Array')
    return new UniqueId(checked(Uint8Array.from(bytes), 'UniqueId.fromBytes'))
  }

  /** The id in a base64 string, as `toJSON()` and `toString()` write it. */
  static fromBase64(text: string): UniqueId {
    if (typeof text !== 'string') throw new TypeError('UniqueId.fromBase64: text must be a string')
    const bytes = Buffer.from(text, 'base64')
    // Buffer skips what is not base64, so a damaged text is found by writing the bytes again.
    if (bytes.toString('base64') !== text) throw new RangeError('UniqueId.fromBase64: text is not base64')
    return new UniqueId(checked(Uint8Array.from(bytes), 'UniqueId.fromBase64'))
  }

  /** A copy of the 128 bytes. */
  toBytes(): Uint8Array {
    return Uint8Array.from(this.#bytes)
  }

  /** The id as base64: it travels in JSON, in an environment variable or in a message to a child process. */
  toString(): string {
    return Buffer.from(this.#bytes).toString('base64')
  }

  /** The id as base64, for `JSON.stringify`. */
  toJSON(): string {
    return this.toString()
  }

  /** Whether `other` is an id of the same bytes; false for anything that is no id. */
  equals(other: unknown): boolean {
    return UniqueId._is(other) && Buffer.compare(this.#bytes, other.#bytes) === 0
  }

  get [Symbol.toStringTag](): string {
    return 'UniqueId'
  }
}

function checked(bytes: Uint8Array, api: string): Uint8Array {
  if (bytes.byteLength !== byteLength) {
    throw new RangeError(`${api}: an id has ${byteLength} bytes, got ${bytes.byteLength}`)
  }
  const found = new DataView(bytes.buffer, bytes.byteOffset).getInt32(0, true)
  // Revision and size: another NVSHMEM may have another revision, but not another size.
  if ((found & 0xffff) === byteLength && found >= 0x1_0000) return bytes
  throw new RangeError(`${api}: these ${byteLength} bytes are no id of NVSHMEM`)
}
