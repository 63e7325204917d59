import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Most bytes of the cache on disk. */
const mostBytes = 256 * 2 ** 20
/** Milliseconds after which a temporary file must belong to a killed process. */
const longestWrite = 3_600_000

/** Removes files of killed processes, and the oldest entries above the limit. */
export function prune(folder: string, most = mostBytes): void {
  const now = Date.now()
  const entries: { readonly file: string; readonly bytes: number; readonly time: number }[] = []
  for (const name of readdirSync(folder)) {
    const file = join(folder, name)
    const stats = statSync(file, { throwIfNoEntry: false })
    if (stats === undefined || !stats.isFile()) continue
    if (name.endsWith('.tmp') && now - stats.mtimeMs > longestWrite) rmSync(file, { force: true })
    if (name.endsWith('.bin')) entries.push({ file, bytes: stats.size, time: stats.mtimeMs })
  }
  let bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
  for (const entry of entries.sort((a, b) => a.time - b.time)) {
    if (bytes <= most) return
    rmSync(entry.file, { force: true })
    bytes -= entry.bytes
  }
}
