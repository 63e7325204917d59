/** What calls on native threads work with at this moment: it is given back when they have returned, whenever it is disposed of. */
import { type MemoryRange, memoryProtocol, type StreamHandle, streamProtocol } from '@shoal/types'
import { warnOnReject } from './lifetime.js'

interface Use {
  readonly memory: MemoryRange | undefined
  readonly stream: bigint | undefined
  readonly ended: Promise<unknown>
}

const uses = new Set<Use>()

/** Keeps memory and streams until a call that works with them has returned. They must be there still. */
export function keepWhile(operands: readonly object[], ended: Promise<unknown>): void {
  for (const operand of operands) {
    const memory = (operand as { [memoryProtocol]?: MemoryRange })[memoryProtocol]
    const stream = (operand as { [streamProtocol]?: StreamHandle })[streamProtocol]?.handle
    const settled = ended.then(forget, forget)
    const use: Use = { memory, stream, ended: settled }
    uses.add(use)
    function forget(): void {
      uses.delete(use)
    }
  }
}

/** Whether anything is in use: what most disposals ask first, and then nothing else. */
export function isAnythingInUse(): boolean {
  return uses.size > 0
}

/** Settles when no call works with the memory any more; undefined when none does. */
export function whenMemoryUnused(address: bigint, byteLength: number): Promise<unknown> | undefined {
  return whenEnded(
    ({ memory }) =>
      memory !== undefined &&
      memory.address < address + BigInt(byteLength) &&
      address < memory.address + BigInt(memory.byteLength),
  )
}

/** Gives a stream back now, or when no call works with it any more. */
export function afterUseOfStream(handle: bigint, release: () => void): void {
  later('A Stream', uses.size === 0 ? undefined : whenEnded(({ stream }) => stream === handle), release)
}

/** Gives memory back now, or when no call works with it any more. */
export function afterUseOfMemory(what: string, address: bigint, byteLength: number, release: () => void): void {
  later(what, uses.size === 0 ? undefined : whenMemoryUnused(address, byteLength), release)
}

function whenEnded(isMeant: (use: Use) => boolean): Promise<unknown> | undefined {
  const found = [...uses].filter(isMeant)
  return found.length === 0 ? undefined : Promise.all(found.map(({ ended }) => ended))
}

function later(what: string, unused: Promise<unknown> | undefined, release: () => void): void {
  if (unused === undefined) release()
  else warnOnReject(what, unused.then(release))
}
