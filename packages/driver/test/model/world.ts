import type {
  AddressRange,
  DescriptorHandle,
  Device,
  GrowableRange,
  MappedRange,
  MemoryAccess,
  MulticastObject,
  PhysicalMemory,
} from '@shoal/driver'

/** Bytes at the start of each granule that the model knows. */
export const known = 64

/** What physical memory holds, whoever refers to it. */
export class Memory {
  readonly device: number
  readonly isShared: boolean
  /** The first bytes of every granule are all the same byte. */
  readonly bytes: number[]
  /** Whether it is on its device's account: until nothing of this process has it any more, for whatever comes back. */
  isCounted = true

  constructor(device: number, granules: number, isShared: boolean) {
    this.device = device
    this.isShared = isShared
    this.bytes = new Array<number>(granules).fill(0)
  }
}

export interface Binding {
  readonly memory: Memory
  readonly offset: number
  readonly memoryOffset: number
  readonly granules: number
  /** The object through which it was bound, and which alone can unbind it. */
  readonly by: MulticastObject
}

/** A multicast object, whoever refers to it. */
export class Team {
  readonly granules: number
  readonly count: number
  readonly canShare: boolean
  isShared = false
  readonly devices = new Set<number>()
  bindings: Binding[] = []

  constructor(count: number, granules: number, canShare: boolean) {
    this.count = count
    this.granules = granules
    this.canShare = canShare
  }

  get isComplete(): boolean {
    return this.devices.size === this.count
  }
}

export interface RangeModel {
  readonly real: AddressRange
  readonly granules: number
}

export interface PhysicalModel {
  readonly real: PhysicalMemory
  readonly memory: Memory
  /** Whether this handle may be exported: not one that was imported. */
  readonly canExport: boolean
}

export interface MulticastModel {
  readonly real: MulticastObject
  readonly team: Team
  /** Devices that were added through this object. */
  readonly added: Set<number>
  readonly isImported: boolean
}

export interface MappingModel {
  readonly real: MappedRange
  readonly range: RangeModel
  readonly offset: number
  readonly granules: number
  readonly canExport: boolean
  /** One of the two. */
  readonly memory?: Memory
  readonly team?: Team
  readonly access: MemoryAccess[]
}

export interface HandleModel {
  readonly real: DescriptorHandle
  readonly memory?: Memory
  readonly team?: Team
}

export interface GrowableModel {
  readonly real: GrowableRange
  readonly maximum: number
  readonly step: number
  length: number
  /** Granules of each piece. */
  pieces: number[]
  bytes: number[]
}

interface Disposables {
  readonly real: { readonly disposed: boolean; dispose(): void }
}

/** Everything that a sequence of commands has made, as it should be and as it is. */
export class World {
  readonly devices: readonly Device[]
  readonly unit: number
  readonly capacity: number
  readonly ranges: RangeModel[] = []
  readonly physicals: PhysicalModel[] = []
  readonly multicasts: MulticastModel[] = []
  readonly mappings: MappingModel[] = []
  readonly handles: HandleModel[] = []
  readonly growables: GrowableModel[] = []
  readonly #memories: Memory[] = []

  constructor(devices: readonly Device[], unit: number) {
    this.devices = devices
    this.unit = unit
    this.capacity = devices[0]?.totalMemory ?? 0
  }

  addMemory(memory: Memory): Memory {
    this.#memories.push(memory)
    return memory
  }

  /** Bytes in use on a device, by the model. */
  used(device: number): number {
    this.#settle()
    const counted = this.#memories.filter((memory) => memory.isCounted && memory.device === device)
    const grown = device === 0 ? this.growables.filter(({ real }) => !real.disposed) : []
    const granules =
      counted.reduce((sum, { bytes }) => sum + bytes.length, 0) +
      grown.reduce((sum, { pieces }) => sum + pieces.reduce((all, piece) => all + piece, 0), 0)
    return granules * this.unit
  }

  /** What is mapped in a range and not taken out again. */
  mappedIn(range: RangeModel): MappingModel[] {
    return this.mappings.filter((mapping) => mapping.range === range && !mapping.real.disposed)
  }

  /** Disposes of everything, from a place in the list on. */
  disposeAll(start: number): void {
    const all: Disposables[] = [
      ...this.ranges,
      ...this.physicals,
      ...this.multicasts,
      ...this.mappings,
      ...this.handles,
      ...this.growables,
    ]
    for (let index = 0; index < all.length; index += 1) all[(index * 7 + start) % all.length]?.real.dispose()
    // The step of 7 may have left some out.
    for (const { real } of all) real.dispose()
  }

  #isTeamAlive(team: Team): boolean {
    return (
      this.multicasts.some((one) => one.team === team && !one.real.disposed) ||
      this.mappings.some((one) => one.team === team && !one.real.disposed)
    )
  }

  /** Memory that nothing in the process has any more leaves the account; teams that nobody has lose their bindings. */
  #settle(): void {
    for (const { team } of this.multicasts) if (!this.#isTeamAlive(team)) team.bindings = []
    const alive = new Set<Memory>()
    for (const { real, memory } of this.physicals) if (!real.disposed) alive.add(memory)
    for (const { real, memory } of this.mappings) if (!real.disposed && memory !== undefined) alive.add(memory)
    for (const { team } of this.multicasts) for (const { memory } of team.bindings) alive.add(memory)
    for (const memory of this.#memories) if (!alive.has(memory)) memory.isCounted = false
  }
}
