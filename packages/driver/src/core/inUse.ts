/** Memory and streams that calls on native threads use now. Disposed objects are released after these calls return. */
import type { BackgroundWork } from '@shoal/ffi'
import { type MemoryRange, memoryProtocol, type StreamHandle, streamProtocol } from '@shoal/types'
import { warnOnReject } from './lifetime.js'
import { addAwaited, awaitReleases, releasesAreAwaited } from './releasing.js'

interface Use {
  readonly memory: MemoryRange | undefined
  readonly stream: bigint | undefined
  readonly ended: Promise<unknown>
  /** Settles when no caller waits for the call any more. The call may never return. */
  readonly givenUp: Promise<void>
}

const uses = new Set<Use>()

/**
 * Keeps memory and streams until a call that uses them returns. They must not be disposed of yet.
 * @param background the running call; releasing it means that the caller has stopped waiting
 */
export function keepWhile(operands: readonly object[], ended: Promise<unknown>, background?: BackgroundWork): void {
  if (operands.length === 0) return
  const givenUp = whenReleased(background)
  for (const operand of operands) {
    const memory = (operand as { [memoryProtocol]?: MemoryRange })[memoryProtocol]
    const stream = (operand as { [streamProtocol]?: StreamHandle })[streamProtocol]?.handle
    const settled = ended.then(forget, forget)
    const use: Use = { memory, stream, ended: settled, givenUp }
    uses.add(use)
    function forget(): void {
      uses.delete(use)
    }
  }
}

/**
 * Keeps memory that a library has registered, even after dispose(), until the returned function is called. dispose()
 * does not wait for it; the memory is freed later. The memory's owner must stay reachable.
 */
export function keepRegistered(memory: object): () => void {
  let end = (): void => undefined
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const background: BackgroundWork = {}
  keepWhile([memory], ended, background)
  background.release?.()
  return end
}

function whenReleased(background: BackgroundWork | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (background === undefined) return
    const { release } = background
    background.release = () => {
      release?.()
      resolve()
    }
  })
}

/** Whether anything is in use. A fast check for most disposals, which need no other. */
export function isAnythingInUse(): boolean {
  return uses.size > 0
}

/** Settles when no call uses the memory any more; undefined when none does. */
export function whenMemoryUnused(address: bigint, byteLength: number): Promise<unknown> | undefined {
  return whenEnded(usesMemory(address, byteLength))
}

/**
 * Resolves to true when no call uses the memory any more. Resolves to false when a caller has stopped waiting for one
 * of the calls: that call may never return, and it does not keep the process alive. Free the memory with
 * {@link afterUseOfMemory} then.
 */
export function untilMemoryUnused(address: bigint, byteLength: number): Promise<boolean> {
  return untilEnded(usesMemory(address, byteLength))
}

function untilEnded(isMeant: (use: Use) => boolean): Promise<boolean> {
  const found = [...uses].filter(isMeant)
  const all = Promise.all(found.map(({ ended }) => ended)).then(() => true)
  return Promise.race([all, ...found.map(({ givenUp }) => givenUp.then(() => false))])
}

function usesMemory(address: bigint, byteLength: number): (use: Use) => boolean {
  return ({ memory }) =>
    memory !== undefined &&
    memory.address < address + BigInt(byteLength) &&
    address < memory.address + BigInt(memory.byteLength)
}

/** Releases a stream now, or when no call uses it any more. */
export function afterUseOfStream(handle: bigint, release: () => void): void {
  later('A Stream', ({ stream }) => stream === handle, release)
}

/** Frees memory now, or when no call uses it any more. */
export function afterUseOfMemory(what: string, address: bigint, byteLength: number, release: () => void): void {
  later(what, usesMemory(address, byteLength), release)
}

function whenEnded(isMeant: (use: Use) => boolean): Promise<unknown> | undefined {
  const found = [...uses].filter(isMeant)
  return found.length === 0 ? undefined : Promise.all(found.map(({ ended }) => ended))
}

function later(what: string, isMeant: (use: Use) => boolean, release: () => void): void {
  const unused = uses.size === 0 ? undefined : whenEnded(isMeant)
  if (unused === undefined) release()
  else if (releasesAreAwaited()) addAwaited(releaseOnceUnused(what, unused, untilEnded(isMeant), release))
  else warnOnReject(what, unused.then(release))
}

async function releaseOnceUnused(
  what: string,
  unused: Promise<unknown>,
  ended: Promise<boolean>,
  release: () => void,
): Promise<void> {
  if (await ended) await awaitReleases(release)
  // A caller has stopped waiting for a call, and the call may never return. So this release is not awaited.
  else warnOnReject(what, unused.then(release))
}
