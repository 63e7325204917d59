import { cuDriverGetVersion, cuGetErrorName, cuGetErrorString } from '@shoal/cuda-sys/driver'
import { CudaVersion, isStickyCudaStatus, StatusError } from '@shoal/types'
import { readCString, scratch } from './native.js'

/** Status codes the driver package itself decides on. */
export const Status = {
  success: 0,
  invalidValue: 1,
  deinitialized: 4,
  noDevice: 100,
  invalidContext: 201,
  invalidHandle: 400,
  notReady: 600,
  peerAccessAlreadyEnabled: 704,
  peerAccessNotEnabled: 705,
  contextIsDestroyed: 709,
} as const

/** What the errors of one library are made of. */
export interface StatusErrors {
  /** Throws unless the status is success. `api` is the C function that returned it. */
  check(status: number, api: string): void
  /** The same for a call that releases something: what is gone already is no error. */
  checkRelease(status: number, api: string): void
  /** The error for a status, with `detail` after the library's own text. */
  error(status: number, api: string, detail?: string): StatusError
}

/** Errors of the driver. */
export const driverErrors: StatusErrors = { check, checkRelease, error: driverError }

interface Words {
  readonly name: string
  readonly description: string
}

const wordsOf = new Map<number, Words>()

/** Throws a {@link StatusError} unless `status` is CUDA_SUCCESS. `api` is the C function that returned it. */
export function check(status: number, api: string): void {
  if (status !== Status.success) throw driverError(status, api)
}

/**
 * Checks the status of a call that releases something. A context that is lost and a driver that has shut down have
 * released it already and have been, or will be, reported by another call; a dispose() must not hide that report.
 */
export function checkRelease(status: number, api: string): void {
  if (status !== Status.success && !isGone(status)) throw driverError(status, api)
}

/** Whether a status says that what should be released went with its context or with the driver. */
export function isGone(status: number): boolean {
  return status === Status.deinitialized || status === Status.contextIsDestroyed || isStickyCudaStatus(status)
}

/** The error for a status, with the name and the text the driver has for it. `detail` is appended to the text. */
export function driverError(status: number, api: string, detail = ''): StatusError {
  const words = describe(status)
  const description = detail === '' ? words.description : `${words.description}\n${detail}`
  const version = installedVersion()
  return new StatusError({
    library: 'CUDA driver',
    api,
    status,
    code: words.name,
    description,
    isSticky: isStickyCudaStatus(status),
    ...(version === undefined ? {} : { libraryVersion: version }),
  })
}

function describe(status: number): Words {
  let words = wordsOf.get(status)
  if (words === undefined) {
    words = {
      name: text(cuGetErrorName, status) ?? `CUDA_ERROR_${status}`,
      description: text(cuGetErrorString, status) ?? 'a code this driver has no text for',
    }
    wordsOf.set(status, words)
  }
  return words
}

function text(lookUp: typeof cuGetErrorName, status: number): string | undefined {
  const out = scratch()
  out.u64[0] = 0n
  const outcome: number = lookUp(status as Parameters<typeof cuGetErrorName>[0], out)
  const address = out.u64[0]
  return outcome === Status.success && address !== 0n ? (readCString(address) ?? undefined) : undefined
}

function installedVersion(): string | undefined {
  const out = scratch()
  const outcome: number = cuDriverGetVersion(out)
  const version = out.i32[0] ?? 0
  return outcome === Status.success && version > 0 ? CudaVersion.from(version).toString() : undefined
}
