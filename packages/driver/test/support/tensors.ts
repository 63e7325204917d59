import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { vi } from 'vitest'
import { scratchFolder } from '../../../../tooling/config/src/scratchFolder.js'

/** A tensor as the addon of the tests makes and reads it. */
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

/** An addon of somebody else, which makes and takes tensors of DLPack. */
export interface TensorAddon {
  make(tensor: RawTensor): bigint | object
  read(address: bigint, isVersioned: boolean): RawTensor
  /** Calls the deleter so many times, on another thread. */
  end(address: bigint, isVersioned: boolean, times: number): void
  /** Deleters of this addon's tensors that were called since it was asked last. */
  deletions(): number
}

/** Compiles it. */
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

/** The collector, as long as it has not found what it should. */
export async function collectUntil(isDone: () => boolean): Promise<void> {
  await vi.waitFor(
    () => {
      collect()
      if (!isDone()) throw new Error('not collected')
    },
    { timeout: 20_000, interval: 10 },
  )
}
