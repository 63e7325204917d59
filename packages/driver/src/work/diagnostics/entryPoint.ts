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

/** Which function is meant by a name. */
export interface EntryPointOptions {
  /** As CUDA of this version has it. Default: the newest that the driver knows. */
  readonly version?: CudaVersion | undefined
  /** Which default stream it means. Default: the stream mode of the process. */
  readonly mode?: StreamMode | undefined
}

const entryPointKeys: OptionKeys<EntryPointOptions> = { version: true, mode: true }
/** `CUdriverProcAddress_flags`. */
const modes = { legacy: 1, 'per-thread': 2 } as const

/** What the driver has of a name: `versionTooOld` where the function came later than the version that was asked for. */
export type EntryPoint =
  | { readonly result: 'found'; readonly address: bigint }
  | { readonly result: 'notFound' | 'versionTooOld'; readonly address: undefined }

/**
 * The address of a function of libcuda, which any code that calls C may call (`cuGetProcAddress`). A name without
 * suffix, such as `cuMemAlloc`, is the function of that version.
 * @throws TypeError, RangeError, StatusError for a version that the driver does not know yet
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
