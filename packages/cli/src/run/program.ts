import { statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { UsageError } from '../command.js'
import type { RunOptions } from './options.js'

export interface Program {
  readonly file: string
  readonly argumentsOf: (rank: number) => string[]
}

/** Returns the program to start for each rank. @throws UsageError */
export function programOf(options: RunOptions): Program {
  const { script, scriptArguments, nodeOptions } = options
  if (options.exec) return { file: script, argumentsOf: () => [...scriptArguments] }
  const path = resolve(script)
  if (!isFile(path)) throw new UsageError(`there is no file ${path}`)
  const stripping = /\.[cm]?ts$/.test(path) ? typeStripping(path) : []
  return {
    file: process.execPath,
    argumentsOf: (rank) => [
      ...stripping,
      ...nodeOptions.map((option) => inspectOption(option, rank)),
      path,
      ...scriptArguments,
    ],
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

/** Returns the options that make Node run TypeScript. */
function typeStripping(path: string): string[] {
  // Newer than the installed types: 'strip', 'transform' or false.
  const typescript: unknown = Reflect.get(process.features, 'typescript')
  if (typeof typescript === 'string') return []
  if (process.allowedNodeEnvironmentFlags.has('--experimental-strip-types')) return ['--experimental-strip-types']
  try {
    return ['--import', pathToFileURL(createRequire(path).resolve('tsx')).href]
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND'
    // A broken installation reports its own error.
    const why = isMissing ? '' : ` (tsx is there and cannot be used: ${(error as Error).message})`
    throw new UsageError(
      `Node ${process.version} cannot run ${path}: take Node 22.6 or later, install tsx (npm install tsx), or compile it${why}`,
    )
  }
}

/** Gives each rank its own inspector port. */
function inspectOption(option: string, rank: number): string {
  const match = /^(--inspect(?:-brk|-wait|-port)?)(?:=(.*:)?(\d+)|=(.*))?$/.exec(option)
  if (match === null) return option
  const [, name, host = '', port, hostAlone] = match
  if (hostAlone !== undefined) return `${name}=${hostAlone}:${9229 + rank}`
  const first = port === undefined ? 9229 : Number(port)
  return `${name}=${host}${first === 0 ? 0 : first + rank}`
}
