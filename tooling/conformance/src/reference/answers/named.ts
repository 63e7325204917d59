import { type AccessPolicyWindow, type Device, DeviceBuffer, Event, type LaunchAttributes } from '@shoal/driver'
import type { Value } from '../answer.js'
import type { LaunchAttributeInputs, Place } from '../cases.js'

/** Memory and events by the names that a case gives them. */
export class Named implements Disposable {
  readonly device: Device
  readonly #memory = new Map<string, DeviceBuffer<'u8'>>()
  /** The addresses of memory, also after it was freed. */
  readonly #ranges = new Map<string, { readonly start: bigint; readonly end: bigint }>()
  readonly events: ReadonlyMap<string, Event>
  readonly #lasting: readonly DeviceBuffer<'u8'>[]

  constructor(device: Device, memory: Readonly<Record<string, number>>) {
    this.device = device
    for (const [name, bytes] of Object.entries(memory)) this.add(name, DeviceBuffer.allocate(device, 'u8', bytes))
    this.#lasting = [...this.#memory.values()]
    this.events = new Map(['one', 'two', 'order'].map((name) => [name, Event.create(device)]))
  }

  /** Adds memory that a graph or a stream allocates later. */
  add(name: string, buffer: DeviceBuffer<'u8'>): void {
    const { address: start, byteLength } = buffer
    this.#memory.set(name, buffer)
    this.#ranges.set(name, { start, end: start + BigInt(byteLength) })
  }

  buffer(name: string): DeviceBuffer<'u8'> {
    return this.#memory.get(name) as DeviceBuffer<'u8'>
  }

  /** Returns bytes that start at a place. */
  at([name, offset = 0]: Place, byteLength: number): DeviceBuffer<'u8'> {
    return this.buffer(name).slice(offset, offset + byteLength)
  }

  event(name: string): Event {
    return this.events.get(name) as Event
  }

  /** Returns an address in a form that is the same in any process. */
  place(address: bigint): Value {
    for (const [name, { start, end }] of this.#ranges)
      if (address >= start && address < end) return [name, Number(address - start)]
    return address === 0n ? null : 'elsewhere'
  }

  eventName(handle: bigint): Value {
    for (const [name, event] of this.events) if (event.handle === handle) return name
    return null
  }

  /** Returns the attributes of a launch, with this object's memory and events. */
  attributes({
    accessPolicyWindow: window,
    programmaticEvent,
    launchCompletionEvent,
    ...plain
  }: LaunchAttributeInputs): LaunchAttributes {
    return {
      ...(plain as LaunchAttributes),
      ...(window && { accessPolicyWindow: this.#window(window) }),
      ...(programmaticEvent && {
        programmaticEvent: { ...programmaticEvent, event: this.event(programmaticEvent.event) },
      }),
      ...(launchCompletionEvent && { launchCompletionEvent: this.event(launchCompletionEvent) }),
    }
  }

  #window({
    memory,
    bytes,
    ...rest
  }: Exclude<LaunchAttributeInputs['accessPolicyWindow'], undefined>): AccessPolicyWindow {
    return { ...rest, memory: this.at(memory, bytes) }
  }

  [Symbol.dispose](): void {
    for (const buffer of this.#lasting) buffer.dispose()
    for (const event of this.events.values()) event.dispose()
  }
}
