import { CUmemAllocationHandleType, CUmemLocationType } from '@shoal/cuda-sys/driver'
import { isArray, requireKeyOf, StatusError } from '@shoal/types'
import { Status } from '../../core/errors.js'

/**
 * Kinds of handle for exporting memory: a POSIX file descriptor (Linux), a fabric handle (64 bytes, valid on all
 * machines of one NVLink domain), a Win32 handle, or a Win32-KMT handle.
 */
export type HandleKind = 'posix-fd' | 'fabric' | 'win32' | 'win32-kmt'

const codes: { readonly [K in HandleKind]: CUmemAllocationHandleType } = {
  'posix-fd': CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
  win32: CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_WIN32,
  'win32-kmt': CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_WIN32_KMT,
  fabric: CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_FABRIC,
}

const isWindows = process.platform === 'win32'

/** Returns the platform's own kind of handle: `'posix-fd'` on Linux, `'win32'` on Windows. */
export function platformHandleKind(): HandleKind {
  return isWindows ? 'win32' : 'posix-fd'
}

/** Returns the `CUmemAllocationHandleType` of a kind. @throws TypeError */
export function handleKindCode(kind: HandleKind, api: string, name = 'kind'): CUmemAllocationHandleType {
  return requireKeyOf(kind, api, name, codes)
}

/** Returns the bits of one or several kinds. @throws TypeError */
export function handleKindBits(
  kinds: HandleKind | readonly HandleKind[],
  api: string,
  name = 'handleTypes',
): CUmemAllocationHandleType {
  if (!isArray(kinds)) return handleKindCode(kinds as HandleKind, api, name)
  let bits = 0
  for (const kind of kinds) bits |= handleKindCode(kind as HandleKind, api, name)
  return bits as CUmemAllocationHandleType
}

/** Returns the kinds for bits. */
export function handleKindsOf(bits: number): HandleKind[] {
  return (Object.keys(codes) as HandleKind[]).filter((kind) => (bits & codes[kind]) !== 0)
}

function requirementOf(kind: HandleKind): string | undefined {
  if (kind === 'fabric') return 'fabric handles need devices of an NVLink fabric and the right to use an IMEX channel'
  if ((kind === 'posix-fd') === isWindows) return `${kind} handles are of ${isWindows ? 'Linux' : 'Windows'}`
  return undefined
}

/** Runs a creation with these kinds of handle. Adds the requirements of such handles to a StatusError. */
export function withCreateReason<T>(bits: number, create: () => T, place?: CUmemLocationType): T {
  try {
    return create()
  } catch (error) {
    const reasons = handleKindsOf(bits).map(requirementOf)
    if (bits !== 0 && place === CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST) {
      reasons.push("memory of 'host' has no handles; name a node: { hostNode: 0 }")
    }
    throw withDetail(error, reasons.filter((reason) => reason !== undefined).join('; '))
  }
}

/** Runs an export. Adds the kinds from the object's creation, if known, to a StatusError. */
export function withExportReason<T>(
  kind: HandleKind,
  handleTypes: () => readonly HandleKind[] | undefined,
  write: () => T,
): T {
  try {
    return write()
  } catch (error) {
    const kinds = handleTypes()
    if (kinds === undefined || kinds.includes(kind)) throw error
    throw withDetail(error, `it was made with ${kindsInWords(kinds)}, not ${kind}`)
  }
}

/** Adds the reason to an error about binding memory with other kinds of handle. Returns other errors unchanged. */
export function bindReason(
  error: unknown,
  ofObject: readonly HandleKind[] | undefined,
  ofMemory: () => readonly HandleKind[],
): unknown {
  if (!(error instanceof StatusError && error.status === Status.invalidValue) || ofObject === undefined) return error
  const kinds = ofMemory()
  if (ofObject.every((kind) => kinds.includes(kind))) return error
  return withDetail(error, `the object was made with ${kindsInWords(ofObject)}, the memory with ${kindsInWords(kinds)}`)
}

function kindsInWords(kinds: readonly HandleKind[]): string {
  return kinds.length === 0 ? 'no handles' : `handles of kind ${kinds.join(', ')}`
}

/** Calls a function. Adds the likely reason to a StatusError with one of these statuses. */
export function withReason<T>(statuses: readonly number[], reason: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    if (error instanceof StatusError && statuses.includes(error.status)) throw withDetail(error, reason)
    throw error
  }
}

/** Returns a copy of a StatusError with a line after the library's text. Returns other errors unchanged. */
function withDetail(error: unknown, detail: string): unknown {
  if (!(error instanceof StatusError) || detail === '') return error
  const { library, api, status, code, description, isSticky, libraryVersion } = error
  const text = `${description}\n${detail}`
  return new StatusError({ library, api, status, code, description: text, isSticky, libraryVersion, cause: error })
}
