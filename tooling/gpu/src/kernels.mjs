// Builds the kernels: PTX for every device since compute capability 7.5, and a cubin for each device named here.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { capture } from '../../setup/workspace.mjs'

/** Compute capabilities that get machine code. */
export const cubinArchitectures = ['sm_90']

/** Compiles every .cu file of `source` into `target`: NAME.ptx and NAME.<architecture>.cubin. */
export function buildKernels(source, target, nvcc = 'nvcc') {
  const names = readdirSync(source).filter((file) => file.endsWith('.cu'))
  for (const file of names) {
    const name = file.slice(0, -'.cu'.length)
    capture(nvcc, ['-ptx', '-arch=compute_75', '-o', join(target, `${name}.ptx`), join(source, file)])
    for (const architecture of cubinArchitectures) {
      const cubin = join(target, `${name}.${architecture}.cubin`)
      capture(nvcc, ['-cubin', `-arch=${architecture}`, '-o', cubin, join(source, file)])
    }
  }
  return names
}
