import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { driver } from '@shoal/cuda-sys'
import { readMemory } from '@shoal/ffi'
import { bindBigCall } from '@shoal/ffi/calls'

const platform = `${process.platform}-${process.arch}`
const simLibrary = fileURLToPath(new URL(`../../../sim/prebuilds/${platform}/libshoal-sim-cuda.so.1`, import.meta.url))

/** Compiles a C file of ./native into a shared library; gives its path and what removes it. */
export function compile(source: string): { readonly path: string; readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-driver-'))
  const path = join(folder, `${source}.so`)
  const file = fileURLToPath(new URL(`../native/${source}.c`, import.meta.url))
  execFileSync(process.env['CC'] ?? 'cc', ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-o', path, file, '-ldl'])
  return { path, remove: () => rmSync(folder, { recursive: true }) }
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
