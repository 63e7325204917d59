import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/*
 * Server: magic, 32 random bytes. Client: magic, rank and world size (32 bits, little-endian), 32 random bytes, its proof.
 * Server: one byte, 0 and its own proof, or the reason of a refusal. A proof is an HMAC-SHA256 over both random values,
 * keyed by the secret, so the secret itself never travels and no answer can be used again. Each side has a label of its own:
 * neither proof can be sent back as the other.
 */
const magic = Buffer.from('shoal/1\n')
const nonceBytes = 32
const proofBytes = 32

export const greetingBytes = magic.byteLength + nonceBytes
export const introductionBytes = magic.byteLength + 8 + nonceBytes + proofBytes
export const acceptanceBytes = 1 + proofBytes

/** Why a server refuses a client; the byte that says so is the index plus 1. */
export const refusals = ['secret', 'worldSize', 'rank', 'taken', 'gone'] as const
export type Refusal = (typeof refusals)[number]

export interface Introduction {
  readonly rank: number
  readonly worldSize: number
  readonly isProven: boolean
  readonly nonce: Buffer
}

function proofOf(secret: Buffer, label: string, parts: readonly Uint8Array[]): Buffer {
  const mac = createHmac('sha256', secret).update(label)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

/** What the server says first. */
export function makeGreeting(): { readonly bytes: Buffer; readonly nonce: Buffer } {
  const nonce = randomBytes(nonceBytes)
  return { bytes: Buffer.concat([magic, nonce]), nonce }
}

/** The server's nonce, or undefined where something else answered. */
export function readGreeting(bytes: Buffer): Buffer | undefined {
  return bytes.subarray(0, magic.byteLength).equals(magic) ? bytes.subarray(magic.byteLength) : undefined
}

export function makeIntroduction(
  secret: Buffer,
  serverNonce: Buffer,
  rank: number,
  worldSize: number,
): { readonly bytes: Buffer; readonly nonce: Buffer } {
  const numbers = Buffer.alloc(8)
  numbers.writeUInt32LE(rank, 0)
  numbers.writeUInt32LE(worldSize, 4)
  const nonce = randomBytes(nonceBytes)
  const proof = proofOf(secret, 'shoal rank', [serverNonce, nonce, numbers])
  return { bytes: Buffer.concat([magic, numbers, nonce, proof]), nonce }
}

export function readIntroduction(secret: Buffer, serverNonce: Buffer, bytes: Buffer): Introduction | undefined {
  if (!bytes.subarray(0, magic.byteLength).equals(magic)) return undefined
  const numbers = bytes.subarray(magic.byteLength, magic.byteLength + 8)
  const nonce = bytes.subarray(magic.byteLength + 8, magic.byteLength + 8 + nonceBytes)
  const expected = proofOf(secret, 'shoal rank', [serverNonce, nonce, numbers])
  const isProven = timingSafeEqual(bytes.subarray(-proofBytes), expected)
  return { rank: numbers.readUInt32LE(0), worldSize: numbers.readUInt32LE(4), isProven, nonce }
}

export function makeAcceptance(secret: Buffer, serverNonce: Buffer, clientNonce: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0]), proofOf(secret, 'shoal rendezvous', [serverNonce, clientNonce])])
}

export function makeRefusal(refusal: Refusal): Buffer {
  return Buffer.from([refusals.indexOf(refusal) + 1])
}

/** Whether the server knows the secret too. */
export function isAcceptance(secret: Buffer, serverNonce: Buffer, clientNonce: Buffer, bytes: Buffer): boolean {
  return timingSafeEqual(bytes, makeAcceptance(secret, serverNonce, clientNonce))
}
