import { fstatSync, readlinkSync, type Stats } from 'node:fs'
import type { CUmemAllocationHandleType } from '@shoal/cuda-sys/driver'
import type { NativeMemory } from '@shoal/ffi'
import { describeValue, FeatureNotSupportedError } from '@shoal/types'
import { scratch } from '../native.js'
import { exportAs, type HandleKind, handleKindCode } from '../vmm/handleKinds.js'
import { deviceUuid, visibleUuids } from './deviceUuid.js'
import {
  DescriptorHandle,
  FabricHandle,
  type HandleContent,
  type HandleFacts,
  type ShareableHandle,
  type ShareableHandleOf,
  WindowsHandle,
} from './handles.js'

/**
 * Has the driver write a handle and wraps it. `device` is the ordinal of the device the thing lies on, `made` gives the
 * kinds that it was made for, where they are known.
 */
export function exportHandle<K extends HandleKind, C extends HandleContent>(
  content: C,
  kind: K,
  byteLength: number,
  device: number | undefined,
  made: () => readonly HandleKind[] | undefined,
  write: (out: NativeMemory, code: CUmemAllocationHandleType) => void,
): ShareableHandleOf<K, C> {
  const code = handleKindCode(kind)
  const uuid = device === undefined ? undefined : deviceUuid(device)
  const out = scratch()
  exportAs(kind, made, () => write(out, code))
  const facts = { content, byteLength, deviceUuid: uuid }
  return wrap(kind, out, facts) as ShareableHandleOf<K, C>
}

function wrap<C extends HandleContent>(kind: HandleKind, out: NativeMemory, facts: HandleFacts<C>): ShareableHandle<C> {
  switch (kind) {
    case 'posix-fd':
      return new DescriptorHandle(out.i32[0] as number, facts)
    case 'fabric':
      return new FabricHandle(new Uint8Array(out.buffer.slice(0, 64)), facts)
    case 'win32':
    case 'win32-kmt':
      return new WindowsHandle(kind, out.u64[0] as bigint, facts)
  }
}

/**
 * Checks a handle and gives it to the driver as C wants it: the descriptor or the Windows handle in place of the
 * pointer, the address of the bytes of a fabric handle.
 */
export function importHandle<C extends HandleContent, T>(
  handle: ShareableHandle<C>,
  content: C,
  read: (from: bigint | Uint8Array, code: CUmemAllocationHandleType) => T,
): T {
  requireHandle(handle, content)
  const code = handleKindCode(handle.type)
  requireDevice(handle)
  if (handle instanceof FabricHandle) return read(handle.bytes, code)
  if (handle instanceof WindowsHandle) return read(handle.value, code)
  const { descriptor } = handle
  requireOpenDescriptor(descriptor)
  return read(BigInt(descriptor), code)
}

/** @throws TypeError for what is no handle, or one of something else. */
export function requireHandle(handle: ShareableHandle, content: HandleContent): void {
  const isHandle =
    handle instanceof DescriptorHandle || handle instanceof FabricHandle || handle instanceof WindowsHandle
  if (!isHandle) {
    throw new TypeError(
      `handle must be a DescriptorHandle, FabricHandle or WindowsHandle, not ${describeValue(handle)}`,
    )
  }
  if (handle.content !== content) {
    throw new TypeError(`the handle is of ${nameOfContent[handle.content]}, not of ${nameOfContent[content]}`)
  }
}

const nameOfContent: { readonly [C in HandleContent]: string } = {
  memory: 'memory',
  pool: 'a pool',
  multicast: 'a multicast object',
}

function requireDevice({ deviceUuid: uuid, content }: HandleFacts): void {
  if (uuid === undefined) return
  const visible = visibleUuids()
  if (visible.includes(uuid)) return
  throw new FeatureNotSupportedError({
    library: 'NVIDIA CUDA driver',
    api: `importing the ${content}`,
    reason: `it lies on device ${uuid}, and this process sees only ${visible.join(', ')}`,
  })
}

/** @throws TypeError for a descriptor that is closed or stands for what is no memory, such as a file on disk. */
export function requireOpenDescriptor(descriptor: number): void {
  let status: Stats
  try {
    status = fstatSync(descriptor)
  } catch (error) {
    throw new TypeError(`descriptor ${descriptor} is not open`, { cause: error })
  }
  const other = nameOfOther(status)
  if (other !== undefined) throw new TypeError(`descriptor ${descriptor} is of ${other}, not of shared memory`)
  if (!status.isFile()) return
  // A memory file counts as a file, too; only its name tells.
  const name = nameOf(descriptor)
  if (!name.startsWith('/memfd:')) {
    throw new TypeError(`descriptor ${descriptor} is of the file ${name}, not of shared memory`)
  }
}

function nameOfOther(status: Stats): string | undefined {
  if (status.isDirectory()) return 'a folder'
  if (status.isSocket()) return 'a socket'
  return status.isFIFO() ? 'a pipe' : undefined
}

function nameOf(descriptor: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    // Without /proc nobody can tell: the driver sees what it is.
    return '/memfd:unknown'
  }
}
