import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { vi } from 'vitest'
import { scratchFolder } from '../../../../tooling/config/src/scratchFolder.js'

/** A tensor in the form that the tests' addon creates and reads. */
export interface RawTensor {
  readonly data?: bigint
  readonly deviceType?: number
  readonly deviceId?: number
  readonly code?: number
  readonly bits?: number
  readonly lanes?: number
  readonly shape?: readonly number[]
  readonly strides?: readonly number[]
  readonly ndim?: number
  readonly byteOffset?: number
  readonly major?: number
  readonly flags?: number
  readonly external?: 1
  readonly noDeleter?: 1
}

/** An addon of another package, which creates and takes DLPack tensors. */
export interface TensorAddon {
  make(tensor: RawTensor): bigint | object
  read(address: bigint, isVersioned: boolean): RawTensor
  /** Calls the deleter `times` times on another thread. */
  end(address: bigint, isVersioned: boolean, times: number): void
  /** Returns how many deleters of this addon's tensors were called since the last query. */
  deletions(): number
}

/** Compiles the addon. */
export function tensorAddon(): TensorAddon {
  const headers = createRequire(new URL('../../../ffi/package.json', import.meta.url)).resolve(
    'node-api-headers/package.json',
  )
  const source = fileURLToPath(new URL('../native/tensors.cc', import.meta.url))
  const file = join(scratchFolder(), 'tensors.node')
  const compiler = process.env['CXX'] ?? 'g++'
  execFileSync(compiler, [
    '-std=c++17',
    '-shared',
    '-fPIC',
    '-O1',
    '-pthread',
    '-isystem',
    join(dirname(headers), 'include'),
    source,
    '-o',
    file,
  ])
  return createRequire(import.meta.url)(file) as TensorAddon
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Runs the collector until it has found the expected objects. */
export async function collectUntil(isDone: () => boolean): Promise<void> {
  await vi.waitFor(
    () => {
      collect()
      if (!isDone()) throw new Error('not collected')
    },
    { timeout: 20_000, interval: 10 },
  )
}
