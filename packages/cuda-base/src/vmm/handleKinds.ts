import { CUmemAllocationHandleType, CUmemLocationType } from '@shoal/cuda-sys/driver'
import { describeValue, StatusError } from '@shoal/types'
import { Status } from '../errors.js'

/**
 * How memory leaves the process: a POSIX file descriptor (Linux), a fabric handle (64 bytes, across the machines of one
 * NVLink domain), a Win32 handle, or a Win32-KMT handle.
 */
export type HandleKind = 'posix-fd' | 'fabric' | 'win32' | 'win32-kmt'

const codes: { readonly [K in HandleKind]: CUmemAllocationHandleType } = {
  'posix-fd': CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
  win32: CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_WIN32,
  'win32-kmt': CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_WIN32_KMT,
  fabric: CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_FABRIC,
}

/** The platform's own kind: a file descriptor on Linux, a Win32 handle on Windows. */
export function platformHandleKind(): HandleKind {
  return process.platform === 'win32' ? 'win32' : 'posix-fd'
}

/** @throws TypeError for a kind there is not. */
export function handleKindCode(kind: HandleKind, name = 'kind'): CUmemAllocationHandleType {
  if (typeof kind !== 'string' || !Object.hasOwn(codes, kind)) {
    throw new TypeError(`${name} must be one of ${Object.keys(codes).join(', ')}, not ${describeValue(kind)}`)
  }
  return codes[kind]
}

/** The bits of several kinds. */
export function handleKindBits(kinds: HandleKind | readonly HandleKind[], name: string): number {
  const list = typeof kinds === 'string' ? [kinds] : kinds
  if (!Array.isArray(list)) throw new TypeError(`${name} must be a kind or a list of them, not ${describeValue(kinds)}`)
  return list.reduce((bits, kind: HandleKind) => bits | handleKindCode(kind, name), 0)
}

/** The kinds that bits stand for. */
export function handleKindsOf(bits: number): HandleKind[] {
  return (Object.keys(codes) as HandleKind[]).filter((kind) => (bits & codes[kind]) !== 0)
}

const isWindows = process.platform === 'win32'

function reasonAgainst(kind: HandleKind): string | undefined {
  if (kind === 'fabric') return 'fabric handles need devices of an NVLink fabric and the right to use an IMEX channel'
  if ((kind === 'posix-fd') === isWindows) return `${kind} handles are of ${isWindows ? 'Linux' : 'Windows'}`
  return undefined
}

/** Makes something that can be exported as these kinds; says of a refusal which kind this platform may be without. */
export function makeForKinds<T>(bits: number, make: () => T, place?: CUmemLocationType): T {
  try {
    return make()
  } catch (error) {
    const reasons = handleKindsOf(bits).map(reasonAgainst)
    if (bits !== 0 && place === CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST) {
      reasons.push("memory of 'host' has no handles; name a node: { hostNode: 0 }")
    }
    throw withDetail(error, reasons.filter((reason) => reason !== undefined).join('; '))
  }
}

/** Exports something as a kind; says of a refusal that it was made for others, where that is known. */
export function exportAs<T>(kind: HandleKind, made: () => readonly HandleKind[] | undefined, write: () => T): T {
  try {
    return write()
  } catch (error) {
    const kinds = made()
    if (kinds === undefined || kinds.includes(kind)) throw error
    const others = kinds.length === 0 ? 'no handles' : `handles of kind ${kinds.join(', ')}`
    throw withDetail(error, `it was made for ${others}, not ${kind}`)
  }
}

/** Says of a refusal of the driver what it most likely is about, where it gives one of these statuses. */
export function withReason<T>(statuses: readonly number[], reason: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    if (error instanceof StatusError && statuses.includes(error.status)) throw withDetail(error, reason)
    throw error
  }
}

/** Binds memory to an object; says of a refusal that they were not made for the same handles, where that is so. */
export function bindAs<T>(
  wanted: readonly HandleKind[] | undefined,
  made: () => readonly HandleKind[],
  bind: () => T,
): T {
  try {
    return bind()
  } catch (error) {
    if (!(error instanceof StatusError && error.status === Status.invalidValue) || wanted === undefined) throw error
    const kinds = made()
    if (wanted.every((kind) => kinds.includes(kind))) throw error
    const list = kinds.length === 0 ? 'none' : kinds.join(', ')
    throw withDetail(error, `the object was made for handles of kind ${wanted.join(', ')}, the memory for ${list}`)
  }
}

/** A status of the driver or the runtime, with a line behind the library's own text. */
function withDetail(error: unknown, detail: string): unknown {
  if (!(error instanceof StatusError) || detail === '') return error
  const { library, api, status, code, description, isSticky, libraryVersion } = error
  const text = `${description}\n${detail}`
  return new StatusError({ library, api, status, code, description: text, isSticky, libraryVersion, cause: error })
}
