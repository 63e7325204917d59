import { fileURLToPath } from 'node:url'

/** Returns a file of the kernels with which the software device is tested. */
export function corpusFile(name: string): string {
  return fileURLToPath(new URL(`../../../sim/test/ptx/${name}`, import.meta.url))
}
