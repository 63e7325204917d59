import { NativeMemory } from '@shoal/ffi'

let cells: NativeMemory | undefined

/** Returns a few words of native memory for results by address. Read them before the next call that uses them. */
export function scratch(): NativeMemory {
  cells ??= NativeMemory.allocate(1024)
  return cells
}

export { readCString } from '@shoal/ffi'
