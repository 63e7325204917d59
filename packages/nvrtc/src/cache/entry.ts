import { createHash, randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CompiledData } from '../compilation/data.js'
import { foreign } from './folder.js'

const magic = 'shoal compiled 1\n'
const digestBytes = 32
const kinds = ['ptx', 'cubin', 'ltoIr', 'optixIr'] as const

interface Head extends Pick<CompiledData, 'log' | 'lowered' | 'pchHeapRequired'> {
  readonly key: string
  /** Bytes of each kind of output. */
  readonly sizes: Partial<Record<(typeof kinds)[number], number>>
}

function fileOf(folder: string, key: string): string {
  return join(folder, `${key}.bin`)
}

/** Reads an entry; undefined if it is missing or incomplete. @throws Error for a file that others could have written */
export function readEntry(folder: string, key: string): CompiledData | undefined {
  const file = fileOf(folder, key)
  let content: Buffer
  let descriptor: number
  try {
    // Do not follow a link, which could lead anywhere, and do not block on a pipe.
    descriptor = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const stats = fstatSync(descriptor)
    const problem = stats.isFile() ? foreign(file, stats) : `${file} is no file`
    if (problem !== undefined) throw new Error(problem)
    content = readFileSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  return decode(content, key)
}

/** Decodes an entry. A digest covers the whole file, so a truncated or changed file counts as missing. */
function decode(content: Buffer, key: string): CompiledData | undefined {
  const start = magic.length + digestBytes
  if (content.length < start + 4 || content.toString('latin1', 0, magic.length) !== magic) return undefined
  const body = content.subarray(start)
  if (!createHash('sha256').update(body).digest().equals(content.subarray(magic.length, start))) return undefined
  const headBytes = body.readUInt32LE(0)
  const { key: writtenKey, sizes, ...rest } = JSON.parse(body.toString('utf8', 4, 4 + headBytes)) as Head
  if (writtenKey !== key) return undefined
  let offset = 4 + headBytes
  const parts: Partial<Record<(typeof kinds)[number], Uint8Array>> = {}
  for (const kind of kinds) {
    const size = sizes[kind]
    if (size === undefined) continue
    parts[kind] = new Uint8Array(body.subarray(offset, offset + size))
    offset += size
  }
  const { ptx, cubin, ltoIr, optixIr } = parts
  const { log, lowered, pchHeapRequired } = rest
  return {
    ptx: ptx === undefined ? undefined : new TextDecoder().decode(ptx),
    cubin,
    ltoIr,
    optixIr,
    log,
    lowered,
    pchHeapRequired,
  }
}

/**
 * Writes an entry atomically: to a temporary file, which it renames.
 *
 * @throws Error of the file system
 */
export function writeEntry(folder: string, key: string, data: CompiledData): void {
  const parts = kinds.flatMap((kind) => {
    const part = data[kind]
    return part === undefined ? [] : [[kind, Buffer.from(part as string)] as const]
  })
  const { log, lowered, pchHeapRequired } = data
  const sizes = Object.fromEntries(parts.map(([kind, bytes]) => [kind, bytes.length]))
  const head = Buffer.from(JSON.stringify({ key, sizes, log, lowered, pchHeapRequired } satisfies Head))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(head.length)
  const body = Buffer.concat([length, head, ...parts.map(([, bytes]) => bytes)])
  const digest = createHash('sha256').update(body).digest()
  const aside = join(folder, `${key}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`)
  try {
    writeFileSync(aside, Buffer.concat([Buffer.from(magic), digest, body]), { flag: 'wx', mode: 0o600 })
    renameSync(aside, fileOf(folder, key))
  } catch (error) {
    rmSync(aside, { force: true })
    throw error
  }
}
