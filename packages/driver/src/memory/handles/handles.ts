import { closeDescriptor } from '@shoal/ffi'
import { closeAtThreadEnd } from '@shoal/ffi/calls'
import {
  isInstance,
  type OptionKeys,
  propertyOf,
  requireAddress,
  requireInteger,
  requireOneOf,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { requireUuid } from '../../core/device/deviceUuid.js'
import { forgetLeak, Resource, watchForLeak } from '../../core/lifetime.js'
import { decodeHandle } from '../ipc/handleBytes.js'
import type { HandleKind } from './handleKinds.js'

const contents = ['memory', 'pool', 'multicast'] as const

/** The kind of object behind a handle. */
export type HandleContent = (typeof contents)[number]

/** Properties of the object behind a handle. */
export interface HandleFacts<C extends HandleContent = HandleContent> {
  /** The kind of object. */
  readonly content: C
  /** Size of the memory in bytes; 0 for a pool, which has no size. */
  readonly byteLength: number
  /** UUID of the object's device, `'GPU-…'`; undefined for host memory and multicast objects. */
  readonly deviceUuid?: string | undefined
}

/** A handle as plain data: everything except the handle itself. */
export interface HandleDescription<C extends HandleContent = HandleContent> extends HandleFacts<C> {
  /** The kind of the handle. */
  readonly type: HandleKind
}

const factKeys: OptionKeys<HandleDescription> = { type: true, content: true, byteLength: true, deviceUuid: true }

/** The common parts of all handles. */
abstract class Handle<C extends HandleContent> extends Resource implements HandleDescription<C> {
  abstract readonly type: HandleKind
  readonly content: C
  readonly byteLength: number
  readonly deviceUuid: string | undefined

  constructor(api: string, type: HandleKind, facts: HandleFacts<C>) {
    super()
    const { content, byteLength, deviceUuid } = requireFacts(facts, api, type)
    this.content = content
    this.byteLength = byteLength
    this.deviceUuid = deviceUuid
  }

  /** Returns the {@link HandleDescription}, for `JSON.stringify`. */
  override toJSON(): HandleDescription<C> {
    const { type, content, byteLength, deviceUuid } = this
    return { type, content, byteLength, ...(deviceUuid === undefined ? {} : { deviceUuid }) }
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    const { type, content, byteLength, deviceUuid } = this
    return { type, content, byteLength, deviceUuid }
  }
}

/**
 * A POSIX file descriptor of memory, a pool or a multicast object. `dispose()` closes the descriptor; the object itself
 * exists as long as it is in use.
 * @example
 * using handle = memory.export('posix-fd')
 * await sendHandle(socket, handle)
 */
export class DescriptorHandle<C extends HandleContent = HandleContent> extends Handle<C> {
  protected readonly kind = 'DescriptorHandle'
  /** The kind of the handle. */
  readonly type = 'posix-fd'
  readonly #descriptor: number

  /**
   * Takes ownership of an open descriptor, such as one of another library.
   * @throws TypeError, RangeError
   */
  constructor(descriptor: number, facts: HandleFacts<C>) {
    super('DescriptorHandle', 'posix-fd', facts)
    this.#descriptor = requireInteger(descriptor, 'DescriptorHandle', 'descriptor', 0, 0x7fff_ffff)
    closeAtThreadEnd(descriptor)
    watchForLeak(this, `DescriptorHandle ${descriptor}`, () => {
      closeDescriptor(descriptor)
      return 'its descriptor is closed'
    })
  }

  /** The number of the descriptor. @throws DisposedError */
  get descriptor(): number {
    this._requireAlive()
    return this.#descriptor
  }

  protected release(): void {
    forgetLeak(this)
    closeDescriptor(this.#descriptor)
  }
}

const fabricBytes = 64

/**
 * A fabric handle: 64 bytes that any process of the NVLink domain can import, on any machine.
 *
 * It is plain data: `dispose()` does nothing and exists so that `using` accepts every kind of handle.
 * @example
 * const text = JSON.stringify(memory.export('fabric'))
 * // in another process
 * const imported = PhysicalMemory.import(device, FabricHandle.fromJSON(JSON.parse(text)))
 */
export class FabricHandle<C extends HandleContent = HandleContent> extends Handle<C> {
  protected readonly kind = 'FabricHandle'
  /** The kind of the handle. */
  readonly type = 'fabric'
  readonly #bytes: Uint8Array

  /** @throws TypeError; RangeError unless `bytes` has 64 bytes */
  constructor(bytes: Uint8Array, facts: HandleFacts<C>) {
    super('FabricHandle', 'fabric', facts)
    if (!isInstance(bytes, Uint8Array)) throw wrongType('FabricHandle', 'bytes', 'a Uint8Array', bytes)
    if (bytes.length !== fabricBytes) {
      throw new RangeError(`FabricHandle: bytes must be ${fabricBytes} bytes, not ${bytes.length}`)
    }
    this.#bytes = bytes.slice()
  }

  /** Restores a handle that {@link toJSON} wrote. @throws TypeError, RangeError */
  static fromJSON<C extends HandleContent>(data: HandleDescription<C> & { readonly handle: string }): FabricHandle<C> {
    if (propertyOf(data, 'type') !== 'fabric' || typeof propertyOf(data, 'handle') !== 'string') {
      throw wrongType('FabricHandle.fromJSON', 'data', 'the JSON of a fabric handle', data)
    }
    const bytes = decodeHandle(data.handle, 'FabricHandle.fromJSON', 'data.handle')
    return new FabricHandle(bytes, descriptionOf(data))
  }

  /** A copy of the 64 bytes. */
  get bytes(): Uint8Array {
    return this.#bytes.slice()
  }

  override toJSON(): HandleDescription<C> & { readonly handle: string } {
    return { ...super.toJSON(), handle: Buffer.from(this.#bytes).toString('base64') }
  }

  protected release(): void {
    // A fabric handle is data, so there is nothing to release.
  }
}

/**
 * A Windows handle: Win32, or Win32-KMT, which is the same number in every process. `dispose()` does nothing: the
 * caller calls `CloseHandle` for a Win32 handle.
 */
export class WindowsHandle<
  C extends HandleContent = HandleContent,
  K extends 'win32' | 'win32-kmt' = 'win32' | 'win32-kmt',
> extends Handle<C> {
  protected readonly kind = 'WindowsHandle'
  /** The kind of the handle. */
  readonly type: K
  /** The `HANDLE` as a number. */
  readonly value: bigint

  /** @throws TypeError, RangeError */
  constructor(type: K, value: bigint, facts: HandleFacts<C>) {
    super('WindowsHandle', requireOneOf<HandleKind>(type, 'WindowsHandle', 'type', ['win32', 'win32-kmt']), facts)
    this.type = type
    this.value = requireAddress(value, 'WindowsHandle', 'value')
  }

  protected release(): void {
    // A Win32-KMT handle must not be closed, and a Win32 handle may have another owner.
  }
}

/** A handle of any kind. */
export type ShareableHandle<C extends HandleContent = HandleContent> =
  | DescriptorHandle<C>
  | FabricHandle<C>
  | WindowsHandle<C>

/** The class for a kind of handle. */
export type ShareableHandleOf<K extends HandleKind, C extends HandleContent> = K extends 'posix-fd'
  ? DescriptorHandle<C>
  : K extends 'fabric'
    ? FabricHandle<C>
    : K extends 'win32' | 'win32-kmt'
      ? WindowsHandle<C, K>
      : never

/** @throws TypeError */
export function requireContent<C extends HandleContent>(content: C, api: string): C {
  return requireOneOf<HandleContent>(content, api, 'content', contents) as C
}

/** Returns only the known fields of a description, which may come from another version of this package. */
export function descriptionOf<C extends HandleContent>(data: HandleDescription<C>): HandleDescription<C> {
  const { type, content, byteLength, deviceUuid } = data
  return { type, content, byteLength, deviceUuid }
}

/**
 * Returns only the checked properties from a possible handle description.
 * @throws TypeError, RangeError
 */
function requireFacts<C extends HandleContent>(
  facts: HandleFacts<C> & { readonly type?: HandleKind },
  api: string,
  type: HandleKind,
): HandleFacts<C> {
  requireOptions<object>(facts, api, factKeys, 'facts')
  const { content, byteLength, deviceUuid, type: named = type } = facts
  requireOneOf<HandleKind>(named, api, 'facts.type', [type])
  requireOneOf<HandleContent>(content, api, 'facts.content', contents)
  requireInteger(byteLength, api, 'facts.byteLength', content === 'pool' ? 0 : 1)
  if (deviceUuid !== undefined) requireUuid(deviceUuid, api, 'facts.deviceUuid')
  return { content, byteLength, deviceUuid }
}
