/**
 * Predicts where the system's loader finds a library by name, in the loader's order.
 *
 * Prediction is necessary because loading runs a library's code. The loader reads an empty entry of LD_LIBRARY_PATH as
 * the working directory; this search skips it.
 */
import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { list } from './folders.js'

/** A file that the loader would try, or why an environment entry is skipped. */
export type LoaderPlace = { readonly file: string } | { readonly entry: string; readonly refusal: string }

/** Yields the places for one name on Linux. */
export function* loaderPlaces(name: string, environment: NodeJS.ProcessEnv = process.env): Generator<LoaderPlace> {
  const named = environment['LD_LIBRARY_PATH'] ?? ''
  for (const folder of named === '' ? [] : named.split(/[:;]/)) {
    if (isAbsolute(folder)) yield { file: join(folder, name) }
    else yield { entry: folder, refusal: 'an entry of LD_LIBRARY_PATH that is not an absolute path, skipped' }
  }
  for (const file of cached(name)) yield { file }
  for (const folder of systemFolders()) yield { file: join(folder, name) }
}

/**
 * Returns Node's lib folder and the loader's default folders.
 *
 * Conda and Nix install libraries in Node's lib folder.
 */
function systemFolders(): string[] {
  const triplet = list('/usr/lib').filter((name) => name.endsWith('-linux-gnu'))
  return [
    join(dirname(process.execPath), '..', 'lib'),
    ...triplet.map((name) => join('/usr/lib', name)),
    '/usr/lib64',
    '/lib64',
    '/usr/lib',
    '/lib',
  ]
}

const magic = 'glibc-ld.so.cache1.1'
const [headerBytes, entryBytes] = [48, 24]
/** Flags of libraries for Node's C library on this processor. */
const wantedFlags: Readonly<Record<string, number>> = { x64: 0x0303, arm64: 0x0a03 }

/** Reads the loader cache that `ldconfig` writes. */
function cached(name: string, file = '/etc/ld.so.cache'): string[] {
  let cache: Buffer
  try {
    cache = readFileSync(file)
  } catch {
    return [] // no cache on this system
  }
  const start = cache.indexOf(magic, 0, 'latin1')
  // Ignore a truncated cache.
  if (start < 0 || cache.length < start + headerBytes) return []
  if (cache.length < start + headerBytes + cache.readUInt32LE(start + 20) * entryBytes) return []
  const text = (at: number): string => cache.toString('utf8', start + at, cache.indexOf(0, start + at))
  const found: string[] = []
  for (let left = cache.readUInt32LE(start + 20), at = start + headerBytes; left > 0; left -= 1, at += entryBytes) {
    const isOurs = cache.readUInt32LE(at) === wantedFlags[process.arch]
    if (isOurs && text(cache.readUInt32LE(at + 4)) === name) found.push(text(cache.readUInt32LE(at + 8)))
  }
  return found
}
