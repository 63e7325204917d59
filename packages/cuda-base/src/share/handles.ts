import { closeSync } from 'node:fs'
import { describeValue } from '@shoal/types'
import { requireInteger } from '../checks.js'
import { forgetLeak, Resource, watchForLeak } from '../lifetime.js'
import type { HandleKind } from '../vmm/handleKinds.js'

/** What a handle stands for. */
export type HandleContent = 'memory' | 'pool' | 'multicast'

/** What is known of the thing behind a handle. */
export interface HandleFacts<C extends HandleContent = HandleContent> {
  readonly content: C
  /** Bytes of the memory; 0 for a pool, which has no size of its own. */
  readonly byteLength: number
  /** UUID of the device it lies on, `'GPU-…'`; undefined for host memory and multicast objects. */
  readonly deviceUuid?: string | undefined
}

/** A handle without what makes it one: what travels beside a descriptor. */
export interface HandleDescription<C extends HandleContent = HandleContent> extends HandleFacts<C> {
  readonly type: HandleKind
}

/** A POSIX file descriptor. dispose() closes it; the memory behind it stays as long as somebody has it. */
export class DescriptorHandle<C extends HandleContent = HandleContent>
  extends Resource
  implements HandleDescription<C>
{
  protected readonly kind = 'DescriptorHandle'
  readonly type = 'posix-fd'
  readonly content: C
  readonly byteLength: number
  readonly deviceUuid: string | undefined
  readonly #descriptor: number

  /** Takes over an open descriptor, such as one that came from another library. */
  constructor(descriptor: number, facts: HandleFacts<C>) {
    super()
    this.#descriptor = requireInteger(descriptor, 'descriptor', 0, 0x7fff_ffff)
    const { content, byteLength, deviceUuid } = checkFacts(facts)
    this.content = content
    this.byteLength = byteLength
    this.deviceUuid = deviceUuid
    watchForLeak(this, `DescriptorHandle ${descriptor}`, () => 'the descriptor stays open')
  }

  /** The descriptor. @throws DisposedError after dispose(). */
  get descriptor(): number {
    this._requireAlive()
    return this.#descriptor
  }

  /** What is to be told beside the descriptor, which itself is no data. */
  toJSON(): HandleDescription<C> {
    return describeHandle(this)
  }

  protected release(): void {
    forgetLeak(this)
    closeSync(this.#descriptor)
  }
}

const fabricBytes = 64

/** A fabric handle: 64 bytes that any process of the NVLink domain can import, on this machine or another. */
export class FabricHandle<C extends HandleContent = HandleContent> implements HandleDescription<C> {
  readonly type = 'fabric'
  readonly content: C
  readonly byteLength: number
  readonly deviceUuid: string | undefined
  readonly #bytes: Uint8Array

  /** @throws RangeError unless there are 64 bytes. */
  constructor(bytes: Uint8Array, facts: HandleFacts<C>) {
    if (!(bytes instanceof Uint8Array)) throw new TypeError(`bytes must be a Uint8Array, not ${describeValue(bytes)}`)
    if (bytes.length !== fabricBytes) {
      throw new RangeError(`a fabric handle has ${fabricBytes} bytes, not ${bytes.length}`)
    }
    const { content, byteLength, deviceUuid } = checkFacts(facts)
    this.#bytes = bytes.slice()
    this.content = content
    this.byteLength = byteLength
    this.deviceUuid = deviceUuid
  }

  /** The handle that {@link toJSON} wrote. */
  static fromJSON<C extends HandleContent>(data: HandleDescription<C> & { readonly handle: string }): FabricHandle<C> {
    if (typeof data !== 'object' || data === null || data.type !== 'fabric' || typeof data.handle !== 'string') {
      throw new TypeError(`expected the JSON of a fabric handle, got ${describeValue(data)}`)
    }
    return new FabricHandle(Uint8Array.from(Buffer.from(data.handle, 'base64')), data)
  }

  /** A copy of the 64 bytes. */
  get bytes(): Uint8Array {
    return this.#bytes.slice()
  }

  toJSON(): HandleDescription<C> & { readonly handle: string } {
    return { ...describeHandle(this), handle: Buffer.from(this.#bytes).toString('base64') }
  }

  /** Does nothing: a fabric handle is data. It is there so that `using` takes a handle of any kind. */
  dispose(): void {
    // Nothing to give back.
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}

/** A handle of Windows: a Win32 handle, or a Win32-KMT handle, which is the same number in every process. */
export class WindowsHandle<
  C extends HandleContent = HandleContent,
  K extends 'win32' | 'win32-kmt' = 'win32' | 'win32-kmt',
> implements HandleDescription<C>
{
  readonly type: K
  readonly content: C
  readonly byteLength: number
  readonly deviceUuid: string | undefined
  readonly value: bigint

  constructor(type: K, value: bigint, facts: HandleFacts<C>) {
    if (type !== 'win32' && type !== 'win32-kmt') {
      throw new TypeError(`type must be 'win32' or 'win32-kmt', not ${describeValue(type)}`)
    }
    if (typeof value !== 'bigint') throw new TypeError(`value must be a bigint, not ${describeValue(value)}`)
    const { content, byteLength, deviceUuid } = checkFacts(facts)
    this.type = type
    this.value = value
    this.content = content
    this.byteLength = byteLength
    this.deviceUuid = deviceUuid
  }

  /** Does nothing: `CloseHandle` for a Win32 handle is the caller's. It is there so that `using` takes a handle of any kind. */
  dispose(): void {
    // A Win32-KMT handle must not be closed, and a Win32 one may have come from elsewhere.
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}

/** A handle for one kind of thing. */
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

const contents: readonly HandleContent[] = ['memory', 'pool', 'multicast']

/** @throws TypeError for what no handle stands for. */
export function requireContent(content: HandleContent): void {
  if (contents.includes(content)) return
  throw new TypeError(`content must be one of ${contents.join(', ')}, not ${describeValue(content)}`)
}

function checkFacts<C extends HandleContent>(facts: HandleFacts<C>): HandleFacts<C> {
  if (typeof facts !== 'object' || facts === null) {
    throw new TypeError(`expected { content, byteLength }, got ${describeValue(facts)}`)
  }
  requireContent(facts.content)
  requireInteger(facts.byteLength, 'byteLength', facts.content === 'pool' ? 0 : 1, Number.MAX_SAFE_INTEGER)
  const { deviceUuid } = facts
  if (deviceUuid !== undefined && typeof deviceUuid !== 'string') {
    throw new TypeError(`deviceUuid must be a string, not ${describeValue(deviceUuid)}`)
  }
  return facts
}

function describeHandle<C extends HandleContent>(handle: HandleDescription<C>): HandleDescription<C> {
  const { type, content, byteLength, deviceUuid } = handle
  return { type, content, byteLength, ...(deviceUuid === undefined ? {} : { deviceUuid }) }
}
