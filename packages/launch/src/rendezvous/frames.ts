import type { Writable } from 'node:stream'

/** Most bytes of one value. */
export const maximumValueBytes = 2 ** 20
/** Most bytes of a message's header. */
export const headerRoom = 2 ** 17

export type Header = Readonly<Record<string, unknown>>

export interface Message {
  readonly header: Header
  readonly body: Uint8Array
}

export const noBytes: Uint8Array = new Uint8Array(0)

/** The last encoded message: a message to all ranks is one object, and is encoded once. */
let latest: { readonly header: Header; readonly bodyBytes: number; readonly head: Buffer } | undefined

/**
 * Writes a message without copying its bytes. Header and body must not change afterwards.
 *
 * The format: length of the rest, length of the header (both 32 bits, little-endian), a JSON object, bytes.
 */
export function writeMessage(stream: Writable, header: Header, body: Uint8Array = noBytes): void {
  if (latest?.header !== header || latest.bodyBytes !== body.byteLength) {
    latest = { header, bodyBytes: body.byteLength, head: encodeHead(header, body.byteLength) }
  }
  stream.write(latest.head)
  if (body.byteLength > 0) stream.write(body)
}

function encodeHead(header: Header, bodyBytes: number): Buffer {
  const json = Buffer.from(JSON.stringify(header))
  const head = Buffer.allocUnsafe(8 + json.byteLength)
  head.writeUInt32LE(4 + json.byteLength + bodyBytes, 0)
  head.writeUInt32LE(json.byteLength, 4)
  head.set(json, 8)
  return head
}

/** Splits a byte stream into parts of known length and messages. Throws for an invalid message. */
export class Reader {
  #chunks: Buffer[] = []
  #held = 0

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#held += chunk.byteLength
  }

  get held(): number {
    return this.#held
  }

  /** Returns all received bytes without consuming them; undefined if there are none. */
  peek(): Buffer | undefined {
    return this.#held === 0 ? undefined : this.#joined()
  }

  /** Consumes exactly `count` bytes; undefined until they have arrived. */
  take(count: number): Buffer | undefined {
    if (this.#held < count) return undefined
    const all = this.#joined()
    this.#chunks = count === all.byteLength ? [] : [all.subarray(count)]
    this.#held -= count
    return all.subarray(0, count)
  }

  /** Returns the next complete message of at most `maximumBytes`. @throws RangeError, SyntaxError */
  message(maximumBytes: number): Message | undefined {
    if (this.#held < 4) return undefined
    const first = this.#chunks[0] as Buffer
    const length = (first.byteLength >= 4 ? first : this.#joined()).readUInt32LE(0)
    if (length < 4 || length > maximumBytes) throw new RangeError(`a message of ${length} bytes`)
    const frame = this.take(4 + length)
    if (frame === undefined) return undefined
    const headerLength = frame.readUInt32LE(4)
    if (headerLength > length - 4) throw new RangeError(`a header of ${headerLength} bytes in a message of ${length}`)
    const header: unknown = JSON.parse(frame.toString('utf8', 8, 8 + headerLength))
    if (typeof header !== 'object' || header === null) throw new SyntaxError('the header is no object')
    return { header: header as Header, body: Uint8Array.from(frame.subarray(8 + headerLength)) }
  }

  #joined(): Buffer {
    if (this.#chunks.length !== 1) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0] as Buffer
  }
}
