import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/*
 * The handshake. The server sends magic and 32 random bytes. The client sends magic, its identity (`Introducing`), 32
 * random bytes and its proof. The server sends one byte: 0 and its own proof, or the reason of a refusal. A text with a
 * proof follows the refusal if the client has proven the secret.
 *
 * A proof is an HMAC-SHA256, keyed by the secret, over both random values and the data sent with it. So the secret
 * itself is never sent, and no answer can be replayed. Each kind of proof has its own label, so none can be used as
 * another.
 */
const magic = Buffer.from('shoal/2\n')
const nonceBytes = 32
const proofBytes = 32
const hashBytes = 32
const numbersBytes = 20
const instanceBytes = 16
const saidBytes = numbersBytes + instanceBytes + 3 * hashBytes

export const greetingBytes = magic.byteLength + nonceBytes
export const introductionBytes = magic.byteLength + saidBytes + nonceBytes + proofBytes
export const acceptanceBytes = 1 + proofBytes

/** Why a server refuses a client; the byte sent is the index plus 1. */
export const refusals = [
  'secret',
  'job',
  'worldSize',
  'rank',
  'starting',
  'taken',
  'gone',
  'launch',
  'crowded',
] as const
export type Refusal = (typeof refusals)[number]

/** Purpose of a connection: a rank, or a watch on the connection of an admitted rank. */
export type Role = 'rank' | 'watch'

/** A client's identity. */
export interface Introducing {
  readonly rank: number
  readonly worldSize: number
  readonly role: Role
  readonly pid: number
  /** Number of ranks on its machine to check; 0 for no check. */
  readonly localWorldSize: number
  /** Hexadecimal id of one start of a rendezvous, known to rank 0. Empty for other ranks. */
  readonly instance: string
  /** Name of its job; empty if the secret alone identifies the job. */
  readonly job: string
  /** Identity of its machine and of the launcher's process there; empty for no check. */
  readonly place: string
  readonly launch: string
}

/** A client's identity as the server receives it: texts are hexadecimal hashes. */
export interface Introduction extends Introducing {
  readonly isProven: boolean
  readonly nonce: Buffer
}

/** Hashes a text for an introduction; empty for an empty text. */
export function hashOf(text: string): string {
  return text === '' ? '' : createHash('sha256').update(text).digest('hex')
}

export function makeInstance(): string {
  return randomBytes(instanceBytes).toString('hex')
}

function proofOf(secret: Buffer, label: string, parts: readonly Uint8Array[]): Buffer {
  const mac = createHmac('sha256', secret).update(label)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

/** Makes the first message of the server. */
export function makeGreeting(): { readonly bytes: Buffer; readonly nonce: Buffer } {
  const nonce = randomBytes(nonceBytes)
  return { bytes: Buffer.concat([magic, nonce]), nonce }
}

/** Returns the server's nonce, or undefined for another protocol. */
export function readGreeting(bytes: Buffer): Buffer | undefined {
  return bytes.subarray(0, magic.byteLength).equals(magic) ? bytes.subarray(magic.byteLength) : undefined
}

export function makeIntroduction(
  secret: Buffer,
  serverNonce: Buffer,
  who: Introducing,
): { readonly bytes: Buffer; readonly nonce: Buffer } {
  const said = Buffer.alloc(saidBytes)
  const numbers = [who.rank, who.worldSize, who.role === 'watch' ? 1 : 0, who.pid, who.localWorldSize]
  for (const [index, number] of numbers.entries()) said.writeUInt32LE(number, 4 * index)
  const texts = [who.instance, hashOf(who.job), hashOf(who.place), hashOf(who.launch)]
  let start = numbersBytes
  for (const [index, text] of texts.entries()) {
    said.set(Buffer.from(text, 'hex'), start)
    start += index === 0 ? instanceBytes : hashBytes
  }
  const nonce = randomBytes(nonceBytes)
  const proof = proofOf(secret, 'shoal rank', [serverNonce, nonce, said])
  return { bytes: Buffer.concat([magic, said, nonce, proof]), nonce }
}

export function readIntroduction(secret: Buffer, serverNonce: Buffer, bytes: Buffer): Introduction | undefined {
  if (!bytes.subarray(0, magic.byteLength).equals(magic)) return undefined
  const said = bytes.subarray(magic.byteLength, magic.byteLength + saidBytes)
  const nonce = bytes.subarray(magic.byteLength + saidBytes, magic.byteLength + saidBytes + nonceBytes)
  const expected = proofOf(secret, 'shoal rank', [serverNonce, nonce, said])
  const hex = (start: number, length: number): string => {
    const part = said.subarray(start, start + length)
    return part.every((byte) => byte === 0) ? '' : part.toString('hex')
  }
  const hash = (index: number): string => hex(numbersBytes + instanceBytes + index * hashBytes, hashBytes)
  return {
    rank: said.readUInt32LE(0),
    worldSize: said.readUInt32LE(4),
    role: said.readUInt32LE(8) === 1 ? 'watch' : 'rank',
    pid: said.readUInt32LE(12),
    localWorldSize: said.readUInt32LE(16),
    instance: hex(numbersBytes, instanceBytes),
    job: hash(0),
    place: hash(1),
    launch: hash(2),
    isProven: timingSafeEqual(bytes.subarray(-proofBytes), expected),
    nonce,
  }
}

export function makeAcceptance(secret: Buffer, serverNonce: Buffer, clientNonce: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0]), proofOf(secret, 'shoal rendezvous', [serverNonce, clientNonce])])
}

/** True if the server has proven the secret. */
export function isAcceptance(secret: Buffer, serverNonce: Buffer, clientNonce: Buffer, bytes: Buffer): boolean {
  return timingSafeEqual(bytes, makeAcceptance(secret, serverNonce, clientNonce))
}

/** Makes a refusal for a client without proof; it contains nothing about the job. */
export function makeBareRefusal(refusal: Refusal): Buffer {
  return Buffer.from([refusals.indexOf(refusal) + 1])
}

/** Makes a refusal for a client with proof, including words about the job. */
export function makeRefusal(
  secret: Buffer,
  serverNonce: Buffer,
  clientNonce: Buffer,
  refusal: Refusal,
  words: string,
): Buffer {
  const text = Buffer.from(words).subarray(0, 4096)
  const head = Buffer.from([refusals.indexOf(refusal) + 1, 0, 0])
  head.writeUInt16LE(text.byteLength, 1)
  return Buffer.concat([head, text, proofOf(secret, 'shoal refusal', [serverNonce, clientNonce, head, text])])
}

/** Returns the length of a refusal from its first bytes; undefined if more bytes are necessary. */
export function refusalBytes(start: Buffer): number | undefined {
  if (refusals[(start[0] ?? 0) - 1] === 'secret') return 1
  return start.byteLength < 3 ? undefined : 3 + start.readUInt16LE(1) + proofBytes
}

/** Reads a server's refusal; undefined if the server did not prove the secret. */
export function readRefusal(
  secret: Buffer,
  serverNonce: Buffer,
  clientNonce: Buffer,
  bytes: Buffer,
): { readonly refusal: Refusal; readonly words: string } | undefined {
  const refusal = refusals[(bytes[0] ?? 0) - 1]
  if (refusal === undefined) return undefined
  if (refusal === 'secret') return { refusal, words: '' }
  const [head, text] = [bytes.subarray(0, 3), bytes.subarray(3, -proofBytes)]
  const expected = proofOf(secret, 'shoal refusal', [serverNonce, clientNonce, head, text])
  return timingSafeEqual(bytes.subarray(-proofBytes), expected) ? { refusal, words: text.toString() } : undefined
}
