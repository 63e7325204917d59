import { cudaDeviceProp, cudaGetDeviceProperties } from '@shoal/cuda-sys/runtime'
import { type HandleKind, handleKindsOf } from '@shoal/driver/shared'
import { textIn } from '@shoal/ffi'
import { check } from '../calls/runtimeLibrary.js'

const flags = [
  'integrated',
  'canMapHostMemory',
  'concurrentKernels',
  'ECCEnabled',
  'tccDriver',
  'unifiedAddressing',
  'streamPrioritiesSupported',
  'globalL1CacheSupported',
  'localL1CacheSupported',
  'managedMemory',
  'isMultiGpuBoard',
  'hostNativeAtomicSupported',
  'pageableMemoryAccess',
  'concurrentManagedAccess',
  'computePreemptionSupported',
  'canUseHostPointerForRegisteredMem',
  'cooperativeLaunch',
  'pageableMemoryAccessUsesHostPageTables',
  'directManagedMemAccessFromHost',
  'hostRegisterSupported',
  'sparseCudaArraySupported',
  'hostRegisterReadOnlySupported',
  'timelineSemaphoreInteropSupported',
  'memoryPoolsSupported',
  'gpuDirectRDMASupported',
  'deferredMappingCudaArraySupported',
  'ipcEventSupported',
  'clusterLaunch',
  'unifiedFunctionPointers',
  'mpsEnabled',
  'hostNumaMultinodeIpcSupported',
] as const satisfies readonly (keyof cudaDeviceProp)[]

type Flag = (typeof flags)[number]
type Special = 'name' | 'uuid' | 'luid' | 'memoryPoolSupportedHandleTypes' | 'reserved'

type Plain = {
  readonly [K in Exclude<keyof cudaDeviceProp, Special>]: K extends Flag
    ? boolean
    : cudaDeviceProp[K] extends number[]
      ? readonly number[]
      : number
}

/** Every field of `cudaDeviceProp`: flags as booleans, sizes in bytes as numbers. */
export interface DeviceProperties extends Plain {
  /** Product name of the device. */
  readonly name: string
  /** Identifier in the form of `nvidia-smi`, `'GPU-…'`. */
  readonly uuid: string
  /** The locally unique id of Windows graphics interfaces; zeros elsewhere. */
  readonly luid: Uint8Array
  /** Handle kinds that memory pools can be exported as. */
  readonly memoryPoolSupportedHandleTypes: readonly HandleKind[]
}

/** Reads all properties of a device (`cudaGetDeviceProperties`). */
export function deviceProperties(ordinal: number): DeviceProperties {
  const memory = cudaDeviceProp.allocate()
  check(cudaGetDeviceProperties(memory, ordinal), 'cudaGetDeviceProperties')
  const { name, uuid, luid, memoryPoolSupportedHandleTypes, reserved: _, ...rest } = cudaDeviceProp.read(memory)
  const isFlag = new Set<string>(flags)
  const plain = Object.entries(rest).map(([field, value]) => {
    if (isFlag.has(field)) return [field, value !== 0]
    return [field, typeof value === 'bigint' ? Number(value) : value]
  })
  return {
    ...(Object.fromEntries(plain) as Plain),
    name: textIn(Uint8Array.from(name)),
    uuid: uuidText(Uint8Array.from(uuid.bytes)),
    luid: Uint8Array.from(luid),
    memoryPoolSupportedHandleTypes: handleKindsOf(memoryPoolSupportedHandleTypes),
  }
}

function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex')
  return `GPU-${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
