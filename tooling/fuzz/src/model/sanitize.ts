/** Builds the addon and the software device with sanitizers, and runs Node with them. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Launch } from './slice.js'

export const sanitizers = ['address', 'thread'] as const
export type Sanitizer = (typeof sanitizers)[number]

const packageFolder = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const workspace = join(packageFolder, '..', '..')

export const sanitizerFlags: Readonly<Record<Sanitizer, string>> = {
  address: '-fsanitize=address,undefined -fno-sanitize-recover=undefined',
  thread: '-fsanitize=thread',
}

/**
 * Builds the parts that have changed.
 * @returns how to start processes that use them
 */
export function sanitizedLaunch(kind: Sanitizer, say: (line: string) => void): Launch {
  const folder = join(packageFolder, 'build', kind)
  const compiler = process.env['CXX'] ?? 'g++'
  say(`building with ${sanitizerFlags[kind]}`)
  const common = ['CXXFLAGS=-O1 -g -fno-omit-frame-pointer', `SANITIZE=${sanitizerFlags[kind]}`]
  const make = (from: string, ...variables: string[]): void => {
    execFileSync('make', ['-s', `-j${availableParallelism()}`, '-C', join(workspace, from), ...common, ...variables], {
      stdio: 'inherit',
    })
  }
  const addon = join(folder, 'addon')
  const simulator = join(folder, 'sim')
  make('packages/ffi/native', `OUT=${addon}`, `OBJ=${join(addon, 'objects')}`)
  make('packages/sim/native', `OUT=${simulator}`, `BUILD=${join(simulator, 'objects')}`)
  const runtime = kind === 'address' ? 'libasan.so' : 'libtsan.so'
  const library = execFileSync(compiler, [`-print-file-name=${runtime}`], { encoding: 'utf8' }).trim()
  if (!existsSync(library)) throw new Error(`${compiler} has no ${runtime}`)
  const suppressions = join(packageFolder, 'src', 'model', 'threadSuppressions.txt')
  return {
    environment: {
      LD_PRELOAD: library,
      SHOAL_FFI_ADDON: join(addon, 'shoal_ffi.node'),
      SHOAL_SIM_FOLDER: simulator,
      // Node frees only part of its memory at its end, so leaks are not reported. A quarantine of 64 MB keeps freed
      // memory long enough.
      ASAN_OPTIONS: 'detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=64',
      UBSAN_OPTIONS: 'print_stacktrace=1',
      // Node and V8 were built without the sanitizer, so it does not see how they synchronize.
      TSAN_OPTIONS: `ignore_noninstrumented_modules=1:halt_on_error=1:second_deadlock_stack=1:suppressions=${suppressions}`,
    },
    // `setarch -R` switches off address randomization, because ThreadSanitizer needs a fixed layout of addresses.
    prefix: kind === 'thread' ? ['setarch', '-R'] : [],
  }
}
