import type { CompiledData } from '../compilation/data.js'

/** Limits of the cache of the process: entries, and bytes of keys and contents. */
const mostEntries = 256
const mostBytes = 32 * 2 ** 20

const entries = new Map<string, { readonly data: CompiledData; readonly bytes: number }>()
let total = 0

/** Returns a cached result and marks it as most recently used. */
export function recall(key: string): CompiledData | undefined {
  const entry = entries.get(key)
  if (entry === undefined) return undefined
  entries.delete(key)
  entries.set(key, entry)
  return entry.data
}

export function remember(key: string, data: CompiledData): void {
  const { ptx, cubin, ltoIr, optixIr, log } = data
  const bytes = [key, ptx, cubin, ltoIr, optixIr, log].reduce((sum, each) => sum + (each?.length ?? 0), 0)
  if (bytes > mostBytes / 4 || entries.has(key)) return
  entries.set(key, { data, bytes })
  total += bytes
  for (const [oldest, entry] of entries) {
    if (entries.size <= mostEntries && total <= mostBytes) return
    entries.delete(oldest)
    total -= entry.bytes
  }
}
