import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Device } from '@shoal/driver'
import { compile, cudaIncludeFolder } from '../compile.js'
import { libraryPath } from '../devices.js'
import type { RunOptions } from '../options.js'
import type { Member } from './crew.js'

/** Builds a program of `native` against cuda.h and the driver that Shoal has loaded. */
export function compileForRanks(source: string, output: string): string {
  const libcuda = libraryPath('cuda')
  return compile(source, output, [`-I${cudaIncludeFolder()}`, libcuda, `-Wl,-rpath,${dirname(libcuda)}`, '-ldl'])
}

/** A script beside the module `base`, run by this Node. */
export function nodeMember(
  base: string,
  script: string,
  words: readonly (string | number)[],
  environment: Readonly<Record<string, string>> = {},
): Member {
  const file = fileURLToPath(new URL(script, base))
  return { command: process.execPath, arguments: [file, ...words.map(String)], environment }
}

/** As many devices as were asked for. */
export function chooseDevices(all: readonly Device[], { devices: wanted }: RunOptions): readonly Device[] {
  if (wanted !== undefined && wanted > all.length)
    throw new Error(`--devices ${wanted}: there ${all.length === 1 ? 'is one' : `are only ${all.length}`}`)
  return all.slice(0, wanted ?? all.length)
}
