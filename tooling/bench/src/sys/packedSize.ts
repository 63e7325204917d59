import { execFileSync } from 'node:child_process'
import { sysEntries } from './entries.js'
import { packageFolder, withoutDeclarations } from './typeCheck.js'

/** The size in bytes of each raw package's tarball, as npm packs it. Returns the reason if that is impossible. */
export function measurePackedSizes(): Readonly<Record<string, number>> | string {
  const lacking = withoutDeclarations()
  if (lacking !== undefined) return lacking
  const names = [...new Set(sysEntries.map((each) => each.package))]
  try {
    return Object.fromEntries(names.map((name) => [name, packedBytes(packageFolder(name))]))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'npm is not installed here'
    throw error
  }
}

function packedBytes(folder: string): number {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [tarball] = JSON.parse(output) as { size: number }[]
  return tarball?.size ?? Number.NaN
}
