import { readlinkSync } from 'node:fs'
import type { CUmemAllocationHandleType } from '@shoal/cuda-sys/driver'
import type { NativeMemory } from '@shoal/ffi'
import { descriptorKind } from '@shoal/ffi/calls'
import { FeatureNotSupportedError, isInstance, otherCopy, wrongType } from '@shoal/types'
import { deviceUuid, visibleUuids } from '../../core/device/deviceUuid.js'
import { scratch } from '../../core/native.js'
import { type HandleKind, handleKindCode, withExportReason } from './handleKinds.js'
import {
  DescriptorHandle,
  FabricHandle,
  type HandleContent,
  type HandleFacts,
  type ShareableHandle,
  type ShareableHandleOf,
  WindowsHandle,
} from './handles.js'

/** An object that can be exported. */
export interface Exportable<C extends HandleContent> {
  readonly content: C
  readonly byteLength: number
  /** Ordinal of the object's device; undefined for host memory and multicast objects. */
  readonly deviceOrdinal?: number | undefined
  /** Returns the kinds of handle that the object was created with, if known. Called only after a refused export. */
  handleTypes(): readonly HandleKind[] | undefined
}

/** Calls the driver's export function and wraps the handle. */
export function exportHandle<K extends HandleKind, C extends HandleContent>(
  kind: K,
  api: string,
  thing: Exportable<C>,
  write: (out: NativeMemory, code: CUmemAllocationHandleType) => void,
): ShareableHandleOf<K, C> {
  const code = handleKindCode(kind, api)
  const { content, byteLength, deviceOrdinal } = thing
  const uuid = deviceOrdinal === undefined ? undefined : deviceUuid(deviceOrdinal)
  const out = scratch()
  withExportReason(
    kind,
    () => thing.handleTypes(),
    () => write(out, code),
  )
  return handleFrom(kind, out, { content, byteLength, deviceUuid: uuid }) as ShareableHandleOf<K, C>
}

function handleFrom<C extends HandleContent>(
  kind: HandleKind,
  out: NativeMemory,
  facts: HandleFacts<C>,
): ShareableHandle<C> {
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
 * Checks a handle and passes it to the driver in C's form: a descriptor or Windows handle instead of the pointer, or
 * the address of a fabric handle's bytes.
 */
export function importHandle<C extends HandleContent, T>(
  handle: ShareableHandle<C>,
  api: string,
  content: C,
  read: (from: bigint | Uint8Array, code: CUmemAllocationHandleType) => T,
): T {
  requireHandle(handle, api, content)
  const code = handleKindCode(handle.type, api)
  requireVisibleDevice(handle, api)
  if (handle instanceof FabricHandle) return read(handle.bytes, code)
  if (handle instanceof WindowsHandle) return read(handle.value, code)
  return read(BigInt(requireOpenDescriptor(handle, api)), code)
}

/** Checks a handle and its content. @throws TypeError */
export function requireHandle(handle: ShareableHandle, api: string, content: HandleContent): void {
  const classes = [DescriptorHandle, FabricHandle, WindowsHandle]
  if (!classes.some((one) => isInstance(handle, one as typeof DescriptorHandle))) {
    for (const one of classes) {
      const error = otherCopy(handle, api, 'handle', one)
      if (error !== undefined) throw error
    }
    throw wrongType(api, 'handle', 'a DescriptorHandle, FabricHandle or WindowsHandle', handle)
  }
  if (handle.content !== content) {
    throw new TypeError(
      `${api}: handle must be one of ${contentInWords[content]}, not of ${contentInWords[handle.content]}`,
    )
  }
}

const contentInWords: { readonly [C in HandleContent]: string } = {
  memory: 'memory',
  pool: 'a pool',
  multicast: 'a multicast object',
}

function requireVisibleDevice({ deviceUuid: uuid, content }: HandleFacts, api: string): void {
  if (uuid === undefined) return
  const visible = visibleUuids()
  if (visible.includes(uuid)) return
  throw new FeatureNotSupportedError({
    library: 'NVIDIA CUDA driver',
    api,
    reason: `the ${content} lies on device ${uuid}, and this process sees only ${visible.join(', ')}`,
  })
}

/**
 * Returns a handle's descriptor. @throws TypeError when it is closed, or of something other than memory, such as a file
 */
export function requireOpenDescriptor({ descriptor }: DescriptorHandle, api: string): number {
  let kind: ReturnType<typeof descriptorKind>
  try {
    kind = descriptorKind(descriptor)
  } catch (cause) {
    throw new TypeError(`${api}: handle must have an open descriptor, and ${descriptor} is not open`, { cause })
  }
  const what = nameOfOther(kind, descriptor)
  if (what === undefined) return descriptor
  throw new TypeError(`${api}: handle must have a descriptor of shared memory, and ${descriptor} is of ${what}`)
}

function nameOfOther(kind: ReturnType<typeof descriptorKind>, descriptor: number): string | undefined {
  if (kind === 'other') return undefined
  if (kind !== 'file') return `a ${kind}`
  // A memory file looks like an ordinary file. Only its name differs.
  const name = nameOf(descriptor)
  return name.startsWith('/memfd:') ? undefined : `the file ${name}`
}

function nameOf(descriptor: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    // Without /proc this cannot be checked here. The driver checks it.
    return '/memfd:unknown'
  }
}
