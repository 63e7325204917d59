import { cuGetProcAddress } from '@shoal/cuda-sys/driver'
import {
  CudaVersion,
  type OptionKeys,
  requireInstance,
  requireKeyOf,
  requireOptions,
  requireText,
  type StreamMode,
  streamMode,
  withJson,
} from '@shoal/types'
import { driverLibrary } from '../../core/calls/driverLibrary.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { driverVersion } from '../../core/start.js'

/** Options that select a version of a function. */
export interface EntryPointOptions {
  /** The CUDA version of the function. Default: the newest that the driver supports. */
  readonly version?: CudaVersion | undefined
  /** The default stream of the function. Default: the process's stream mode. */
  readonly mode?: StreamMode | undefined
}

const entryPointKeys: OptionKeys<EntryPointOptions> = { version: true, mode: true }
/** Values of `CUdriverProcAddress_flags`. */
const modes = { legacy: 1, 'per-thread': 2 } as const

/** The driver's result for a name: `versionTooOld` if the function is newer than the requested version. */
export type EntryPoint =
  | { readonly result: 'found'; readonly address: bigint }
  | { readonly result: 'notFound' | 'versionTooOld'; readonly address: undefined }

/**
 * Returns the address of a libcuda function, which C code can call (`cuGetProcAddress`). A name without a suffix, such
 * as `cuMemAlloc`, means the function of the given version.
 * @throws TypeError, RangeError; StatusError for a version that the driver does not support
 */
export function entryPoint(name: string, options: EntryPointOptions = {}): EntryPoint {
  const api = 'entryPoint'
  requireText(name, api, 'name')
  const given = requireOptions<EntryPointOptions>(options, api, entryPointKeys)
  driverLibrary.start()
  const { version: wanted = driverVersion(), mode = streamMode() } = given
  const version = requireInstance<CudaVersion>(wanted, api, 'version', CudaVersion as never)
  const flags = requireKeyOf<number>(mode, api, 'mode', modes)
  const out = scratch()
  out.u64[0] = 0n
  out.u64[1] = 0n
  check(cuGetProcAddress(name, out, version.value, flags, out.address + 8n), 'cuGetProcAddress')
  const address = out.u64[0] as bigint
  const result = out.i32[2] as number
  if (address !== 0n) return withJson({ result: 'found', address })
  return { result: result === 2 ? 'versionTooOld' : 'notFound', address: undefined }
}
