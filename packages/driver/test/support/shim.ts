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

/** Compiles a C file of ./native into a shared library, which is deleted after the tests of the file. */
export function compile(source: string): string {
  const path = join(scratchFolder(), `${source}.so`)
  const file = fileURLToPath(new URL(`../native/${source}.c`, import.meta.url))
  execFileSync(process.env['CC'] ?? 'cc', ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-o', path, file, '-ldl'])
  return path
}

/**
 * Returns an environment in which the software device also takes modules and kernels, through test/native/kernelShim.c.
 */
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

/** Returns the last arguments of cuLaunchKernel. */
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

export interface RecordedOccupancy {
  readonly kernel: bigint
  readonly sharedMemory: number
  readonly blockCount: number
  readonly blockSize: number
  readonly flags: number
  readonly calls: number
}

/** Returns the last arguments of an occupancy function. */
export function lastOccupancy(): RecordedOccupancy {
  const address = driver.rawSymbol('shimLastOccupancy')
  if (address === undefined) throw new Error('the kernel shim is not in use')
  const view = new DataView(readMemory(bindBigCall(address, 0, 'pointer', 'shimLastOccupancy')(), 32).buffer)
  const [blockCount, blockSize, flags, calls] = [16, 20, 24, 28].map((at) => view.getUint32(at, true)) as [
    number,
    number,
    number,
    number,
  ]
  const sharedMemory = Number(view.getBigUint64(8, true))
  return { kernel: view.getBigUint64(0, true), sharedMemory, blockCount, blockSize, flags, calls }
}

/** Returns the shim's answer for a block, with the same formula as its C code. */
export function shimActiveBlocks(blockSize: number, sharedMemory: number): number {
  const byThreads = Math.floor(2048 / (Math.ceil(blockSize / 32) * 32))
  const byMemory = sharedMemory > 228 * 1024 ? 0 : Math.floor((228 * 1024) / (sharedMemory + 1024))
  return Math.min(byThreads, byMemory, 16)
}
