import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AstNode } from './ast.js'

export interface Translation {
  /** the C source that includes the headers */
  source: string
  includes: readonly string[]
}

const compiler = process.env['CLANG'] ?? 'clang'

/** The version of clang, or undefined if there is no clang that can dump its AST. */
export function clangVersion(): string | undefined {
  const result = spawnSync(compiler, ['--version'], { encoding: 'utf8' })
  return result.status === 0 ? result.stdout.split('\n')[0] : undefined
}

function runClang(unit: Translation, flags: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-bindgen-'))
  try {
    const file = join(folder, 'unit.c')
    writeFileSync(file, unit.source)
    const result = spawnSync(
      compiler,
      [...unit.includes.map((include) => `-I${include}`), '-std=c11', '-w', ...flags, file],
      {
        encoding: 'utf8',
        maxBuffer: 1 << 30,
      },
    )
    if (result.error) throw new Error(`cannot run ${compiler}: ${result.error.message}`)
    if (result.status !== 0) throw new Error(`${compiler} failed:\n${result.stderr.slice(0, 4000)}`)
    return result.stdout
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The top-level declarations of a translation unit. */
export function dumpAst(unit: Translation): AstNode[] {
  const root = JSON.parse(runClang(unit, ['-Xclang', '-ast-dump=json', '-fsyntax-only'])) as AstNode
  return root.inner ?? []
}

/** The preprocessed translation unit; with the flags `-dM`, the macros that it defines. */
export function preprocess(unit: Translation, flags: readonly string[] = ['-P']): string {
  return runClang(unit, [...flags, '-E'])
}

/** The object-like macros that a translation unit defines, name → body, without the compiler's own. */
export function dumpMacros(unit: Translation): Map<string, string> {
  const own = new Set(runClang({ source: '', includes: [] }, ['-dM', '-E']).split('\n'))
  const macros = new Map<string, string>()
  for (const line of runClang(unit, ['-dM', '-E']).split('\n')) {
    const match = /^#define (\w+)(?: (.*))?$/.exec(line)
    if (match && !own.has(line)) macros.set(match[1] as string, match[2] ?? '')
  }
  return macros
}

/** Evaluates integer constant expressions in the context of a translation unit. */
export function evaluate(unit: Translation, expressions: readonly string[]): bigint[] {
  if (expressions.length === 0) return []
  // One array of the results is short in clang's output, unlike the headers' declarations.
  const probe = `const long long shoal_probe[] = { ${expressions.map((each) => `(long long)(${each})`).join(',\n')} };`
  const code = runClang({ ...unit, source: `${unit.source}\n${probe}\n` }, ['-S', '-emit-llvm', '-o', '-'])
  const [, count, body] = /^@shoal_probe = .*?\[(\d+) x i64\] (zeroinitializer|\[.*\])/m.exec(code) ?? []
  if (Number(count) !== expressions.length) throw new Error('clang did not evaluate every probe')
  if (body === 'zeroinitializer') return expressions.map(() => 0n)
  return [...(body as string).matchAll(/i64 (-?\d+)/g)].map((match) => BigInt(match[1] as string))
}
