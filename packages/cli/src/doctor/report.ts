import type { AddonReport, LibraryReport } from '@shoal/ffi'

/** A problem or note, with remedies. */
export interface Finding {
  readonly level: 'error' | 'warning' | 'note'
  readonly subject: string
  readonly message: string
  /** Alternative remedies; one of them is enough. */
  readonly remedies: readonly string[]
}

export interface DeviceReport {
  readonly ordinal: number
  readonly name: string
  readonly uuid: string
  readonly pciBusId: string
  readonly computeCapability: string
  readonly totalBytes: number
  readonly isSoftware: boolean
  readonly multiprocessors: number
  readonly hasMulticast: boolean
  /** NUMA node, if the system reports it. */
  readonly numaNode?: number
}

/** Access of one device to the memory of another, in this direction. */
export interface LinkReport {
  readonly from: number
  readonly to: number
  readonly hasAccess: boolean
  /** Atomic operations work over NVLink, but not over PCIe. */
  readonly hasNativeAtomics: boolean
  /** The driver's rank among the links of this machine; 0 is the fastest. */
  readonly performanceRank: number
}

/** A network interface to other machines. */
export interface NetworkReport {
  readonly name: string
  /** `rdma`: InfiniBand or RoCE, which NCCL and NVSHMEM prefer. */
  readonly kind: 'rdma' | 'ethernet'
  /** Layer, state and rate of an adapter's first port. */
  readonly link?: string
  readonly numaNode?: number
}

/** The machine itself. */
export interface MachineReport {
  /** Name of the distribution, such as `Ubuntu 24.04.2 LTS`. */
  readonly distribution?: string
  readonly processor?: string
  readonly memoryBytes: number
  readonly numaNodes: readonly { readonly node: number; readonly cpus: string }[]
  readonly networks: readonly NetworkReport[]
  /** Debian or Ubuntu packages of NVIDIA's driver, with versions. */
  readonly driverPackages: Readonly<Record<string, string>>
}

export interface SystemReport {
  /** Version of `@shoal/cli`. */
  readonly shoal: string
  readonly node: string
  readonly platform: string
  readonly cpus: number
  readonly machine?: MachineReport
  /** Version of the NVIDIA kernel module. */
  readonly kernelModule?: string
  /** Size of /dev/shm in bytes. */
  readonly sharedMemoryBytes?: number
  /** The set variables that Shoal, CUDA, NCCL and NVSHMEM read, without secrets. */
  readonly environment: Readonly<Record<string, string>>
  /** Installed launchers, with their paths. */
  readonly launchers: Readonly<Record<string, string>>
}

export interface DoctorReport {
  readonly system: SystemReport
  readonly addon: AddonReport
  readonly libraries: readonly LibraryReport[]
  /** Plugins in the folder of the NVSHMEM library. */
  readonly nvshmemPlugins: readonly string[]
  readonly devices: readonly DeviceReport[]
  readonly links: readonly LinkReport[]
  readonly findings: readonly Finding[]
}
