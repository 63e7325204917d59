import { requireAddress, requireInteger } from '@shoal/types'

/** The handle of an import as C has it: a descriptor by its number, or a handle of Windows. @throws TypeError, RangeError */
export function importedHandle(type: string, handle: number | bigint, api: string) {
  if (type.endsWith('-fd')) return { fd: requireInteger(handle, api, 'handle', 0, 0x7fff_ffff) }
  return { win32: { handle: requireAddress(handle, api, 'handle') } }
}
