/** The inputs of the questions to the CUDA driver, as data. A C++ program and the safe packages both answer them. */
import type { AccessPolicyWindow, LaunchAttributes } from '@shoal/driver'
import type { SplitOptions } from '@shoal/driver/context'
import type { Im2colOptions, Im2colWideOptions, TextureOptions, TiledOptions } from '@shoal/driver/texture'

/** A place in a case's memory: the memory's name, and the offset in bytes. */
export type Place = readonly [name: string, offset?: number]

/** Attributes of a launch, with memory and events by name. */
export interface LaunchAttributeInputs
  extends Omit<LaunchAttributes, 'accessPolicyWindow' | 'programmaticEvent' | 'launchCompletionEvent' | 'raw'> {
  readonly accessPolicyWindow?: Omit<AccessPolicyWindow, 'memory'> & { readonly memory: Place; readonly bytes: number }
  readonly programmaticEvent?: { readonly event: EventName; readonly triggerAtBlockStart?: boolean }
  readonly launchCompletionEvent?: EventName
}

export type EventName = 'one' | 'two'

export interface WordInput {
  readonly operation: 'write' | 'wait'
  readonly memory: Place
  readonly bits: 32 | 64
  readonly value: number
  readonly condition: 'geq' | 'eq' | 'and' | 'nor'
}

type Work =
  | {
      readonly do: 'kernel'
      readonly kernel: string
      readonly grid: readonly number[]
      readonly block: readonly number[]
      readonly sharedMemory?: number
      readonly attributes?: LaunchAttributeInputs
      /** A place is passed as an address, a number as a 32-bit integer. */
      readonly args: readonly (Place | number)[]
    }
  | {
      readonly do: 'fill'
      readonly to: Place
      readonly value: number
      readonly bits: 8 | 16 | 32
      readonly count: number
    }
  | { readonly do: 'copy'; readonly to: Place; readonly from: Place; readonly bytes: number }
  | { readonly do: 'host' }
  | { readonly do: 'words'; readonly operations: readonly WordInput[] }
  | { readonly do: 'allocate'; readonly name: string; readonly bytes: number }
  | { readonly do: 'free'; readonly name: string }

/** A node of a graph. `after` lists the earlier steps of the same list that the node depends on. */
export type NodeStep = { readonly after?: readonly number[] } & (
  | Work
  | { readonly do: 'empty' }
  | { readonly do: 'record' | 'wait'; readonly event: EventName }
  | { readonly do: 'graph'; readonly steps: readonly NodeStep[] }
  | {
      readonly do: 'conditional'
      readonly type: 'if' | 'while' | 'switch'
      readonly value?: number
      readonly bodies: readonly (readonly NodeStep[])[]
    }
)

/** A step that is queued while two streams are captured. `follow` makes a stream wait for the other one. */
export type StreamStep = { readonly stream?: 0 | 1 } & (Work | { readonly do: 'follow'; readonly behind: 0 | 1 })

export interface GraphCase {
  readonly part: 'graph'
  readonly ptx: string
  readonly memory: Readonly<Record<string, number>>
  readonly build: 'by hand' | 'captured'
  readonly steps: readonly NodeStep[] | readonly StreamStep[]
  /** The graph is not launched, because it would wait forever. */
  readonly notRun?: boolean
}

export interface KernelCase {
  readonly part: 'kernel'
  readonly ptx: string
  readonly kernel: string
  readonly set: Readonly<Record<string, number>>
  readonly attributes: readonly string[]
}

export interface OccupancyCase {
  readonly part: 'occupancy'
  readonly ptx: string
  readonly kernel: string
  readonly block: number
  readonly sharedMemory: number
  readonly disableCachingOverride: boolean
  readonly blockCounts: readonly number[]
  readonly limit?: number
  readonly clusters: readonly { readonly grid: number; readonly attributes: LaunchAttributeInputs }[]
}

export interface TextureCase {
  readonly part: 'texture'
  readonly ptx: string
  readonly array: {
    readonly format: 'u8' | 'u16' | 'u32' | 'i8' | 'i16' | 'i32' | 'f16' | 'f32' | 'unorm8' | 'snorm16'
    readonly channels: 1 | 2 | 4
    readonly width: number
    readonly height?: number
    readonly depth?: number
    readonly layers?: number
    readonly cubemap?: boolean
    readonly gather?: boolean
  }
  /** The texels are in memory, with this many bytes per row. */
  readonly pitch?: number
  /** Texels without gaps, as hexadecimal digits. */
  readonly texels: string
  /** The texels of each level of a mipmapped array. */
  readonly levels?: readonly string[]
  readonly options: TextureOptions & {
    readonly addressMode: readonly string[]
    readonly normalizedCoordinates: boolean
  }
  /** Eight floats for each place (x, y, z, level, layer), as hexadecimal digits. */
  readonly places: string
}

/** A tensor map. Its addresses point to no memory. */
export type TensorMapCase = {
  readonly part: 'tensorMap'
  readonly address: string
  /** The address that replaces the first one afterwards. */
  readonly replaced: string
} & (
  | { readonly kind: 'tiled'; readonly options: TiledOptions }
  | { readonly kind: 'im2col'; readonly options: Im2colOptions }
  | { readonly kind: 'im2colWide'; readonly options: Im2colWideOptions }
)

/** How a device is split, how its first group is split by the next step, and so on. */
export interface SplitCase {
  readonly part: 'split'
  readonly steps: readonly SplitStep[]
  /** Whether green contexts are created from the first group, and from the first two. */
  readonly green: boolean
  /** Kinds of resources, as `CUdevResourceType`. */
  readonly kinds: readonly number[]
}

export interface SplitStep extends SplitOptions {
  readonly multiprocessors: number
}

export interface DeviceCase {
  readonly part: 'device'
  readonly attributes: readonly string[]
  readonly limits: readonly string[]
}

export interface StreamCase {
  readonly part: 'stream'
  readonly nonBlocking: boolean
  readonly priority: number
  readonly attributes: Pick<
    LaunchAttributeInputs,
    'accessPolicyWindow' | 'priority' | 'memorySynchronizationDomainMap' | 'memorySynchronizationDomain'
  >
  readonly synchronizationPolicy?: 'auto' | 'spin' | 'yield' | 'blocking'
}

export interface PoolCase {
  readonly part: 'pool'
  readonly maximumBytes?: number
  readonly exported?: boolean
  readonly set: {
    readonly releaseThreshold?: number
    readonly followEventDependencies?: boolean
    readonly opportunistic?: boolean
    readonly internalDependencies?: boolean
  }
  /** Sizes in bytes. */
  readonly allocations: readonly number[]
  readonly trimTo: number
}

export interface Named {
  readonly name: string
  /** Why the packages refuse something that the driver accepts, if they do. */
  readonly stricter?: string
}

export type ReferenceCase = Named &
  (
    | GraphCase
    | KernelCase
    | OccupancyCase
    | TextureCase
    | TensorMapCase
    | SplitCase
    | DeviceCase
    | StreamCase
    | PoolCase
  )
