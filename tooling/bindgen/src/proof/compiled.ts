// A cache of compiled files, keyed by what they were compiled from.
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const cacheFolder = fileURLToPath(new URL('../../../../node_modules/.cache/shoal/compiled', import.meta.url))

/** The time in milliseconds for which an unused entry is kept. */
const kept = 30 * 24 * 60 * 60 * 1000

/** Puts the cached result for these ingredients at `file`. If there is none, calls `make` and caches its result. */
export async function compiledOnce(ingredients: readonly string[], file: string, make: () => Promise<void>) {
  const cached = join(cacheFolder, createHash('sha256').update(JSON.stringify(ingredients)).digest('hex'))
  if (existsSync(cached)) {
    copyFileSync(cached, file)
    const now = new Date()
    utimesSync(cached, now, now)
    return
  }
  await make()
  mkdirSync(cacheFolder, { recursive: true })
  removeOld()
  const begun = `${cached}.${process.pid}`
  copyFileSync(file, begun)
  renameSync(begun, cached)
}

function removeOld(): void {
  for (const name of readdirSync(cacheFolder)) {
    const path = join(cacheFolder, name)
    const { mtimeMs = Date.now() } = statSync(path, { throwIfNoEntry: false }) ?? {}
    if (Date.now() - mtimeMs > kept) rmSync(path, { force: true })
  }
}

/** Identifies the state of a header folder: the sizes and times of its files. */
export function stateOf(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory())
  const lines = files.map(({ parentPath, name }) => {
    const path = join(parentPath, name)
    const { size = 0, mtimeMs = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
    return `${path} ${size} ${mtimeMs}`
  })
  return lines.sort().join('\n')
}
