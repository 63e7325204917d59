import { fileURLToPath } from 'node:url'
import type { Device } from '@shoal/driver'
import type { RunOptions } from '../options.js'
import type { ProcessCommand } from './processGroup.js'

/** The command to run a script next to the module `base` with this Node. */
export function nodeCommand(
  base: string,
  script: string,
  words: readonly (string | number)[],
  environment: Readonly<Record<string, string>> = {},
): ProcessCommand {
  return { command: process.execPath, arguments: [fileURLToPath(new URL(script, base)), ...words], environment }
}

/** The devices that `--devices` selects. */
export function chooseDevices(all: readonly Device[], { devices: wanted }: RunOptions): readonly Device[] {
  if (wanted !== undefined && wanted > all.length)
    throw new Error(`--devices ${wanted}: there ${all.length === 1 ? 'is one' : `are only ${all.length}`}`)
  return all.slice(0, wanted ?? all.length)
}
