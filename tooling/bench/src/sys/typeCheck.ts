import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Series, series } from '../statistics.js'
import { takeRounds } from '../turns.js'
import { sysEntries } from './entries.js'

const require = createRequire(import.meta.url)

/** Milliseconds of the compiler's process: for an empty file, and for a file that imports an entry point. */
export interface TypeCheckFigures {
  readonly typescript: string
  readonly files: Readonly<Record<string, Series>>
}

/** The folder of a package. */
export function packageFolder(name: string): string {
  let folder = dirname(fileURLToPath(import.meta.resolve(name)))
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder)
  return folder
}

/** The reason why there are no declarations to check or to pack, or undefined. */
export function withoutDeclarations(): string | undefined {
  const lacking = sysEntries.find(({ package: name }) => !existsSync(join(packageFolder(name), 'dist', 'index.d.ts')))
  return lacking === undefined ? undefined : `${lacking.package} has no declarations here`
}

/** Times `tsc --noEmit` for each file, alternating. Returns the reason if that is impossible. */
export async function measureTypeChecks(
  rounds: number,
  functions: Readonly<Record<string, string>>,
): Promise<TypeCheckFigures | string> {
  const lacking = withoutDeclarations()
  if (lacking !== undefined) return lacking
  let compiler: string
  try {
    compiler = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc')
  } catch {
    return 'TypeScript is not installed here'
  }
  const { version } = JSON.parse(readFileSync(require.resolve('typescript/package.json'), 'utf8')) as {
    version: string
  }
  const root = mkdtempSync(join(tmpdir(), 'shoal-bench-'))
  try {
    mkdirSync(join(root, 'node_modules', '@shoal'), { recursive: true })
    for (const name of new Set(sysEntries.map((each) => each.package))) {
      symlinkSync(packageFolder(name), join(root, 'node_modules', name))
    }
    const sources = new Map([['an empty file', 'export {}\n']])
    for (const { library, specifier } of sysEntries)
      sources.set(specifier, userFile(specifier, functions[library] ?? ''))
    const projects = [...sources].map(([name, source], index) => ({ name, folder: project(root, index, source) }))
    const runs = projects.map(({ name, folder }) => [name, () => check(compiler, folder)] as const)
    const times = Object.entries(await takeRounds(Object.fromEntries(runs), rounds))
    return { typescript: version, files: Object.fromEntries(times.map(([name, list]) => [name, series(list)])) }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

function userFile(specifier: string, name: string): string {
  return `import { ${name} } from '${specifier}'
export function call(...values: Parameters<typeof ${name}>): ReturnType<typeof ${name}> {
  return ${name}(...values)
}
`
}

function project(root: string, index: number, source: string): string {
  const folder = join(root, String(index))
  mkdirSync(folder)
  const compilerOptions = {
    target: 'ES2022',
    module: 'NodeNext',
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    types: [],
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['user.ts'] }))
  writeFileSync(join(folder, 'user.ts'), source)
  return folder
}

function check(compiler: string, folder: string): number {
  const start = performance.now()
  try {
    execFileSync(process.execPath, [compiler, '-p', folder], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    throw new Error(`the compiler refuses the file: ${String((error as { stdout?: unknown }).stdout)}`, {
      cause: error,
    })
  }
  return performance.now() - start
}
