import type { AddonReport, LibraryReport } from '@shoal/ffi'

/** What is wrong or worth knowing, and what to do about it. */
export interface Finding {
  readonly level: 'error' | 'warning' | 'note'
  readonly subject: string
  readonly message: string
  /** Ways out; one of them is enough. */
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
  /** Where the system tells. */
  readonly numaNode?: number
}

/** What one device can do with the memory of another, in this direction. */
export interface LinkReport {
  readonly from: number
  readonly to: number
  readonly hasAccess: boolean
  /** Over NVLink atomic operations work, over PCIe they do not. */
  readonly hasNativeAtomics: boolean
  /** The driver's ranking among the links of this machine; 0 is the fastest. */
  readonly performanceRank: number
}

/** A way to other machines. */
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
  /** Such as `Ubuntu 24.04.2 LTS`. */
  readonly distribution?: string
  readonly processor?: string
  readonly memoryBytes: number
  readonly numaNodes: readonly { readonly node: number; readonly cpus: string }[]
  readonly networks: readonly NetworkReport[]
  /** What of NVIDIA's driver came as packages of Debian or Ubuntu, with the versions. */
  readonly driverPackages: Readonly<Record<string, string>>
}

export interface SystemReport {
  /** Version of `@shoal/cli`. */
  readonly shoal: string
  readonly node: string
  readonly platform: string
  readonly cpus: number
  readonly machine?: MachineReport
  /** Version of the kernel's half of the NVIDIA driver. */
  readonly kernelModule?: string
  /** Size of /dev/shm in bytes. */
  readonly sharedMemoryBytes?: number
  /** What is set of the variables that Shoal, CUDA, NCCL and NVSHMEM read. Never a secret. */
  readonly environment: Readonly<Record<string, string>>
  /** Launchers that are installed, with their paths. */
  readonly launchers: Readonly<Record<string, string>>
}

export interface DoctorReport {
  readonly system: SystemReport
  readonly addon: AddonReport
  readonly libraries: readonly LibraryReport[]
  /** Plugins of NVSHMEM that lie beside its library. */
  readonly nvshmemPlugins: readonly string[]
  readonly devices: readonly DeviceReport[]
  readonly links: readonly LinkReport[]
  readonly findings: readonly Finding[]
}
