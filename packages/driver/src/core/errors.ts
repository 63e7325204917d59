import { cuDriverGetVersion, cuGetErrorName, cuGetErrorString } from '@shoal/cuda-sys/driver'
import { CudaVersion, isStickyCudaStatus, StatusError } from '@shoal/types'
import { readCString, scratch } from './native.js'

/** Status codes on which the driver package bases decisions. */
export const Status = {
  success: 0,
  invalidValue: 1,
  outOfMemory: 2,
  deinitialized: 4,
  noDevice: 100,
  invalidContext: 201,
  alreadyMapped: 208,
  invalidHandle: 400,
  notReady: 600,
  peerAccessAlreadyEnabled: 704,
  peerAccessNotEnabled: 705,
  contextIsDestroyed: 709,
  hostMemoryAlreadyRegistered: 712,
  cooperativeLaunchTooLarge: 720,
  notSupported: 801,
  streamCaptureImplicit: 906,
} as const

/** A library's name and description of a status. */
export interface StatusText {
  /** The name in C, such as `'CUDA_ERROR_OUT_OF_MEMORY'`. */
  readonly name: string
  /** The library's description of the status. */
  readonly description: string
}

const statusTexts = new Map<number, StatusText>()

/** Throws a {@link StatusError} unless `status` is CUDA_SUCCESS. `api` is the C function that returned it. */
export function check(status: number, api: string): void {
  if (status !== Status.success) throw driverError(status, api)
}

/**
 * Checks the status of a releasing call. Ignores a lost context and a driver that has shut down: they have released the
 * resource, and another call reports them. dispose() must not hide that report.
 */
export function checkRelease(status: number, api: string): void {
  if (status !== Status.success && !isGone(status)) throw driverError(status, api)
}

/** Whether a status means that the resource ended with its context or with the driver. */
export function isGone(status: number): boolean {
  return status === Status.deinitialized || status === Status.contextIsDestroyed || isStickyCudaStatus(status)
}

/** Returns the error for a status, with the driver's name and text. `detail` is appended to the text. */
export function driverError(status: number, api: string, detail = ''): StatusError {
  const text = driverStatusText(status)
  const description = detail === '' ? text.description : `${text.description}\n${detail}`
  const version = installedVersion()
  return new StatusError({
    library: 'CUDA driver',
    api,
    status,
    code: text.name,
    description,
    isSticky: isStickyCudaStatus(status),
    ...(version === undefined ? {} : { libraryVersion: version }),
  })
}

/** Returns the name and text of any status, including success (`cuGetErrorName`, `cuGetErrorString`). */
export function driverStatusText(status: number): StatusText {
  let text = statusTexts.get(status)
  if (text === undefined) {
    text = {
      name: textOf(cuGetErrorName, status) ?? `CUDA_ERROR_${status}`,
      description: textOf(cuGetErrorString, status) ?? 'a code this driver has no text for',
    }
    // For a lost context the software device describes the cause, so the text can differ next time.
    if (!isStickyCudaStatus(status)) statusTexts.set(status, text)
  }
  return text
}

function textOf(lookUp: typeof cuGetErrorName, status: number): string | undefined {
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
