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

/** Bytes at the start of each granule that the model tracks. */
export const known = 64

/** Contents of physical memory, shared by all objects that refer to it. */
export class Memory {
  readonly device: number
  readonly isShared: boolean
  /** The first byte of each granule. The other tracked bytes are equal to it. */
  readonly bytes: number[]
  /** Whether the device counts the memory: as long as an object of this process has it, even if it returns later. */
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
  /** The object that made the binding and is the only one that can end it. */
  readonly by: MulticastObject
}

/** A multicast object, shared by all objects that refer to it. */
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
  /** Whether this handle can be exported. Imported handles cannot. */
  readonly canExport: boolean
}

export interface MulticastModel {
  readonly real: MulticastObject
  readonly team: Team
  /** Devices that this object added. */
  readonly added: Set<number>
  readonly isImported: boolean
}

export interface MappingModel {
  readonly real: MappedRange
  readonly range: RangeModel
  readonly offset: number
  readonly granules: number
  readonly canExport: boolean
  /** The mapped memory, or the mapped team. */
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

/** All objects of a sequence of commands: their expected and their actual state. */
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

  /** Returns the expected bytes in use on a device. */
  used(device: number): number {
    this.#settle()
    const counted = this.#memories.filter((memory) => memory.isCounted && memory.device === device)
    const grown = device === 0 ? this.growables.filter(({ real }) => !real.disposed) : []
    const granules =
      counted.reduce((sum, { bytes }) => sum + bytes.length, 0) +
      grown.reduce((sum, { pieces }) => sum + pieces.reduce((all, piece) => all + piece, 0), 0)
    return granules * this.unit
  }

  /** Returns the current mappings of a range. */
  mappedIn(range: RangeModel): MappingModel[] {
    return this.mappings.filter((mapping) => mapping.range === range && !mapping.real.disposed)
  }

  /** Disposes of all objects from an index of the list on. */
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
    // The step of 7 may have skipped some objects.
    for (const { real } of all) real.dispose()
  }

  #isTeamAlive(team: Team): boolean {
    return (
      this.multicasts.some((one) => one.team === team && !one.real.disposed) ||
      this.mappings.some((one) => one.team === team && !one.real.disposed)
    )
  }

  /** Removes memory without an owner from the count, and the bindings of teams without an owner. */
  #settle(): void {
    for (const { team } of this.multicasts) if (!this.#isTeamAlive(team)) team.bindings = []
    const alive = new Set<Memory>()
    for (const { real, memory } of this.physicals) if (!real.disposed) alive.add(memory)
    for (const { real, memory } of this.mappings) if (!real.disposed && memory !== undefined) alive.add(memory)
    for (const { team } of this.multicasts) for (const { memory } of team.bindings) alive.add(memory)
    for (const memory of this.#memories) if (!alive.has(memory)) memory.isCounted = false
  }
}
