import type { DeviceLibraryName } from '../spec/types.js'

/**
 * How the C headers of the software device differ from the vendors': they are written for code that plays the library.
 */
export interface HeaderFacts {
  /** Enumerations that are plain numbers there: any number may arrive, and the code calculates with them. */
  readonly numbers: readonly string[]
  /** Types that are those of another library there: of the same layout, and handed on. */
  readonly same: Readonly<Record<string, string>>
  /** Enumerations whose members are listed in a macro, in the order of their values: `MACRO(X)` is `X(member) …`. */
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
