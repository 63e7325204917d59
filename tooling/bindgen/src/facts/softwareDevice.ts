import type { DeviceLibraryName } from '../spec/types.js'

/** How the software device's C headers differ from the vendors'. They serve code that implements the library. */
export interface HeaderFacts {
  /** Enumerations that become plain numbers, because callers may pass any number and the code calculates with them. */
  readonly numbers: readonly string[]
  /** Types with the same layout as a type of another library. They become aliases of it. */
  readonly same: Readonly<Record<string, string>>
  /** Enumerations with a macro that lists their members by value: `MACRO(X)` expands to `X(member) …`. */
  readonly lists: Readonly<Record<string, string>>
}

const none: HeaderFacts = { numbers: [], same: {}, lists: {} }

export const headerFacts: Readonly<Record<DeviceLibraryName, HeaderFacts>> = {
  driver: {
    ...none,
    same: {
      CUdeviceptr_v1: 'unsigned int',
      CUmemGenericAllocationHandle_v1: 'unsigned long long',
      CUtexObject_v1: 'unsigned long long',
      CUsurfObject_v1: 'unsigned long long',
    },
    numbers: [
      'CUdevice_attribute',
      'CUfunc_cache',
      'CUsharedconfig',
      'CUcigDataType',
      'CUjit_option',
      'CUlibraryOption',
      'CUfunction_attribute',
      'CUmoduleLoadingMode',
    ],
  },
  runtime: {
    numbers: [
      'cudaError',
      'cudaDeviceAttr',
      'cudaDeviceP2PAttr',
      'cudaLimit',
      'cudaMemoryType',
      'cudaMemPoolAttr',
      'cudaMemAccessFlags',
      'cudaMemAllocationHandleType',
    ],
    same: {
      cudaMemLocation: 'CUmemLocation',
      cudaMemoryAdvise: 'CUmem_advise',
      cudaMemRangeAttribute: 'CUmem_range_attribute',
      cudaMemAccessDesc: 'CUmemAccessDesc',
      cudaJitOption: 'CUjit_option',
      cudaLibraryOption: 'CUlibraryOption',
      cudaLaunchConfig_t: 'CUlaunchConfig',
      cudaFuncAttribute: 'CUfunction_attribute',
      cudaFuncCache: 'CUfunc_cache',
      cudaLogLevel: 'CUlogLevel',
      cudaUserObject_t: 'CUuserObject',
      cudaGraph_t: 'CUgraph',
      cudaMemPoolProps: 'CUmemPoolProps',
      cudaMemPoolPtrExportData: 'CUmemPoolPtrExportData',
      cudaIpcMemHandle_t: 'CUipcMemHandle',
      cudaIpcEventHandle_t: 'CUipcEventHandle',
    },
    lists: { cudaError: 'SHOAL_CUDA_ERRORS' },
  },
  nccl: none,
  nvshmem: { ...none, same: { half: 'ShoalHalf', __nv_bfloat16: 'ShoalBfloat16' } },
}
