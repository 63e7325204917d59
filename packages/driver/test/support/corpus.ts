import { fileURLToPath } from 'node:url'

/** A file of the kernels that the software device is tested with. */
export function corpusFile(name: string): string {
  return fileURLToPath(new URL(`../../../sim/test/ptx/${name}`, import.meta.url))
}
