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

/** What a handle stands for. */
export type HandleContent = (typeof contents)[number]

/** What is known of the thing behind a handle. */
export interface HandleFacts<C extends HandleContent = HandleContent> {
  /** What it is a handle of. */
  readonly content: C
  /** Bytes of the memory; 0 for a pool, which has no size of its own. */
  readonly byteLength: number
  /** UUID of the device it lies on, `'GPU-…'`; undefined for host memory and multicast objects. */
  readonly deviceUuid?: string | undefined
}

/** A handle as plain data: all that is known of it but the handle itself. */
export interface HandleDescription<C extends HandleContent = HandleContent> extends HandleFacts<C> {
  /** The kind of the handle. */
  readonly type: HandleKind
}

const factKeys: OptionKeys<HandleDescription> = { type: true, content: true, byteLength: true, deviceUuid: true }

/** What all handles have. */
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

  /** What {@link HandleDescription} has, for `JSON.stringify`. */
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
 * A POSIX file descriptor that stands for memory, a pool or a multicast object. `dispose()` closes it; what it stands
 * for stays as long as anybody uses it.
 * @example
 * using handle = memory.export('posix-fd')
 * await sendHandle(socket, handle)
 */
export class DescriptorHandle<C extends HandleContent = HandleContent> extends Handle<C> {
  protected readonly kind = 'DescriptorHandle'
  /** Which kind of handle it is. */
  readonly type = 'posix-fd'
  readonly #descriptor: number

  /**
   * Takes over an open descriptor, such as one of another library.
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
 * A fabric handle: 64 bytes that any process of the NVLink domain can import, on this machine or another. It is plain
 * data: `dispose()` does nothing, and is there so that `using` takes a handle of any kind.
 * @example
 * const text = JSON.stringify(memory.export('fabric'))
 * // in another process
 * const imported = PhysicalMemory.import(device, FabricHandle.fromJSON(JSON.parse(text)))
 */
export class FabricHandle<C extends HandleContent = HandleContent> extends Handle<C> {
  protected readonly kind = 'FabricHandle'
  /** Which kind of handle it is. */
  readonly type = 'fabric'
  readonly #bytes: Uint8Array

  /** @throws TypeError; RangeError unless there are 64 bytes. */
  constructor(bytes: Uint8Array, facts: HandleFacts<C>) {
    super('FabricHandle', 'fabric', facts)
    if (!isInstance(bytes, Uint8Array)) throw wrongType('FabricHandle', 'bytes', 'a Uint8Array', bytes)
    if (bytes.length !== fabricBytes) {
      throw new RangeError(`FabricHandle: bytes must be ${fabricBytes} bytes, not ${bytes.length}`)
    }
    this.#bytes = bytes.slice()
  }

  /** The handle that {@link toJSON} wrote. @throws TypeError, RangeError */
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
    // Nothing to release: a fabric handle is data.
  }
}

/**
 * A handle of Windows: a Win32 handle, or a Win32-KMT handle, which is the same number in every process. `dispose()`
 * does nothing: `CloseHandle` for a Win32 handle is the caller's.
 */
export class WindowsHandle<
  C extends HandleContent = HandleContent,
  K extends 'win32' | 'win32-kmt' = 'win32' | 'win32-kmt',
> extends Handle<C> {
  protected readonly kind = 'WindowsHandle'
  /** Which kind of handle it is. */
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
    // A Win32-KMT handle must not be closed, and a Win32 one may have come from elsewhere.
  }
}

/** A handle of any kind. */
export type ShareableHandle<C extends HandleContent = HandleContent> =
  | DescriptorHandle<C>
  | FabricHandle<C>
  | WindowsHandle<C>

/** The class of a kind of handle. */
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

/** A description that may have come from another version of this package, without what else it has. */
export function descriptionOf<C extends HandleContent>(data: HandleDescription<C>): HandleDescription<C> {
  const { type, content, byteLength, deviceUuid } = data
  return { type, content, byteLength, deviceUuid }
}

/**
 * The facts, and no more, of what may be the description of a handle of this type.
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
