import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { driver } from '@shoal/cuda-sys'
import { readMemory } from '@shoal/ffi'
import { bindBigCall } from '@shoal/ffi/calls'
import { scratchFolder } from '../../../../tooling/config/src/scratchFolder.js'

const platform = `${process.platform}-${process.arch}`
const simLibrary = fileURLToPath(new URL(`../../../sim/prebuilds/${platform}/libshoal-sim-cuda.so.1`, import.meta.url))

/** Compiles a C file of ./native into a shared library, which goes with the tests of the file that asks for it. */
export function compile(source: string): string {
  const path = join(scratchFolder(), `${source}.so`)
  const file = fileURLToPath(new URL(`../native/${source}.c`, import.meta.url))
  execFileSync(process.env['CC'] ?? 'cc', ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-o', path, file, '-ldl'])
  return path
}

/** Environment in which the software device also takes modules and kernels, as test/native/kernelShim.c does. */
export function shimEnvironment(path: string): Record<string, string> {
  if (!existsSync(simLibrary)) throw new Error(`${simLibrary} is not there: build @shoal/sim first`)
  return { SHOAL_CUDA_LIBRARY: path, SHIM_SIM: simLibrary }
}

export interface RecordedLaunch {
  readonly grid: readonly number[]
  readonly block: readonly number[]
  readonly sharedMemory: number
  readonly stream: bigint
  readonly launches: number
  readonly arguments: Uint8Array
}

/** What cuLaunchKernel was called with last. */
export function lastLaunch(): RecordedLaunch {
  const address = driver.rawSymbol('shimLastLaunch')
  if (address === undefined) throw new Error('the kernel shim is not in use')
  const bytes = readMemory(bindBigCall(address, 0, 'pointer', 'shimLastLaunch')(), 568)
  const view = new DataView(bytes.buffer)
  const sizes = Array.from({ length: 7 }, (_, index) => view.getUint32(index * 4, true))
  return {
    grid: sizes.slice(0, 3),
    block: sizes.slice(3, 6),
    sharedMemory: sizes[6] as number,
    stream: view.getBigUint64(32, true),
    launches: Number(view.getBigUint64(40, true)),
    arguments: bytes.slice(52, 52 + view.getUint32(48, true)),
  }
}
