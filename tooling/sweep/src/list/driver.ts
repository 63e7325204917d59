// The questions for the CUDA driver.
import type { Spec } from '../spec.js'
import {
  address,
  file,
  type Group,
  GroupBuilder,
  handle,
  ignored,
  integer,
  member,
  none,
  offset,
  out,
  presence,
  similar,
  text,
  use,
  type Value,
} from './steps.js'

/** Codes that no version has given a meaning, and the edges of the type. */
export const unknownCodes = [-1, 99, 998, 1000, 12345, 2147483647, -2147483648]

const zero = integer(0)
const others = 'memory of other processes on the device comes and goes'
const ownName = 'a text with the number of the process in it'
const driversOwn = 'data of the driver for itself'
const devResource = { fields: { _internal_padding: ignored(driversOwn), '108:36': ignored(driversOwn) } }

/** Groups with the driver initialised and device 0 kept as `device`. */
function withDevice(spec: Spec, name: string, options: { devices?: number; optional?: string } = {}): GroupBuilder {
  return new GroupBuilder(spec, name, options)
    .setUp('cuInit', zero)
    .setUp('cuDeviceGet', out('CUdevice', { save: 'device' }), zero)
}

/** The same with the primary context current, kept as `context`. */
function withContext(spec: Spec, name: string, options: { devices?: number; optional?: string } = {}): GroupBuilder {
  return withDevice(spec, name, options)
    .setUp('cuDevicePrimaryCtxRetain', handle('CUcontext', 'context'), use('device'))
    .setUp('cuCtxSetCurrent', use('context'))
}

export function driverGroups(spec: Spec): Group[] {
  const builders = [
    errors(spec),
    device(spec),
    granularity(spec),
    pools(spec),
    context(spec),
    coredump(spec),
    streams(spec),
    pointers(spec),
    virtualMemory(spec),
    arrays(spec),
    textureReferences(spec),
    graphs(spec),
    entryPoints(spec),
    peers(spec),
    functions(spec, 'ptx', 'questions.ptx'),
    functions(spec, 'cubin', 'questions.sm_90.cubin', 'the cubin is for compute capability 9.0'),
  ]
  return builders.map((builder) => builder.build())
}

function errors(spec: Spec): GroupBuilder {
  const group = new GroupBuilder(spec, 'driver-errors', { devices: 0 })
  for (const name of ['cuGetErrorName', 'cuGetErrorString']) {
    const answer = out('const char *', { follow: 'text' })
    group.each('CUresult', (code) => group.ask(name, code, answer))
    for (const code of unknownCodes) group.ask(name, integer(code), answer)
  }
  return group.ask('cuDriverGetVersion', out('int'))
}

function device(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'driver-device')
  const of = use('device')
  group.ask('cuDeviceGetCount', out('int')).ask('cuDeviceGet', out('CUdevice'), integer(4096))
  group.each('CUdevice_attribute', (attribute) => group.ask('cuDeviceGetAttribute', out('int'), attribute, of))
  for (const code of [0, -1, 100_000]) group.ask('cuDeviceGetAttribute', out('int'), integer(code), of)
  group
    .ask('cuDeviceGetAttribute', out('int'), integer(1), integer(-1))
    .ask('cuDeviceGetName', out('char', { count: 256 }), integer(256), of)
    .ask('cuDeviceGetName', out('char', { count: 8 }), integer(8), of)
    .ask('cuDeviceGetUuid', out('CUuuid'), of)
    .ask('cuDeviceGetLuid', out('char', { count: 8 }), out('unsigned int'), of)
    .ask('cuDeviceTotalMem', out('size_t'), of)
    .ask('cuDeviceComputeCapability', out('int'), out('int'), of)
    .ask('cuDeviceGetProperties', out('CUdevprop'), of)
    .ask('cuDeviceGetPCIBusId', out('char', { count: 32, save: 'bus' }), integer(32), of)
    .ask('cuDeviceGetByPCIBusId', out('CUdevice'), address('bus'))
    .ask('cuDeviceGetByPCIBusId', out('CUdevice'), text('ffff:ff:1f.7'))
    .ask('cuDeviceCanAccessPeer', out('int'), of, of)
    .ask('cuDevicePrimaryCtxGetState', of, out('unsigned int'), out('int'))
    .ask('cuModuleGetLoadingMode', out('CUmoduleLoadingMode'))
    .ask('cuCtxGetCurrent', out('CUcontext'))
    .ask('cuCtxGetDevice', out('CUdevice'))
  group.each('CUexecAffinityType', (type) => group.ask('cuDeviceGetExecAffinitySupport', out('int'), type, of))
  for (const channels of [1, 2, 4])
    group.each('CUarray_format', (format) =>
      group.ask('cuDeviceGetTexture1DLinearMaxWidth', out('size_t'), format, integer(channels), of),
    )
  group.each('CUgraphMem_attribute', (attribute) =>
    group.ask('cuDeviceGetGraphMemAttribute', of, attribute, out('cuuint64_t')),
  )
  group.each('CUdevResourceType', (type) =>
    group.ask('cuDeviceGetDevResource', of, out('CUdevResource', devResource), type),
  )
  const operations = spec.members('CUatomicOperation')
  return group.ask(
    'cuDeviceGetHostAtomicCapabilities',
    out('unsigned int', { count: operations.length }),
    { kind: 'members', enumeration: 'CUatomicOperation', names: operations },
    integer(operations.length),
    of,
  )
}

function granularity(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'driver-granularity')
  const plain = spec.members('CUmemAllocationHandleType').filter((name) => !name.endsWith('_MAX'))
  let number = 0
  group.each('CUmemLocationType', (location, where) => {
    if (where.endsWith('_MAX')) return
    for (const name of plain) {
      const prop = `prop${number++}`
      group.memory(prop, 'CUmemAllocationProp', {
        type: member('CUmemAllocationType', 'CU_MEM_ALLOCATION_TYPE_PINNED'),
        requestedHandleTypes: member('CUmemAllocationHandleType', name),
        'location.type': location,
        'location.id': zero,
      })
      group.each('CUmemAllocationGranularity_flags', (flag) =>
        group.ask('cuMemGetAllocationGranularity', out('size_t'), address(prop), flag),
      )
    }
  })
  // Only asked: multicast objects are never made.
  for (const devices of [1, 2]) {
    const prop = `multicast${devices}`
    group.memory(prop, 'CUmulticastObjectProp', { numDevices: integer(devices), size: integer(2 ** 21) })
    group.each('CUmulticastGranularity_flags', (flag) =>
      group.ask('cuMulticastGetGranularity', out('size_t'), address(prop), flag),
    )
  }
  return group
}

function pools(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'driver-pools')
  const pinned = member('CUmemAllocationType', 'CU_MEM_ALLOCATION_TYPE_PINNED')
  const onDevice = member('CUmemLocationType', 'CU_MEM_LOCATION_TYPE_DEVICE')
  group
    .ask('cuDeviceGetDefaultMemPool', handle('CUmemoryPool', 'default'), use('device'))
    .ask('cuDeviceGetMemPool', handle('CUmemoryPool', 'current'), use('device'))
    .memory('place', 'CUmemLocation', { type: onDevice, id: zero })
    .memory('host', 'CUmemLocation', { type: member('CUmemLocationType', 'CU_MEM_LOCATION_TYPE_HOST') })
    .ask('cuMemGetDefaultMemPool', handle('CUmemoryPool'), address('place'), pinned)
    .ask('cuMemGetMemPool', handle('CUmemoryPool'), address('place'), pinned)
    .memory('props', 'CUmemPoolProps', {
      allocType: pinned,
      'location.type': onDevice,
      'location.id': zero,
      maxSize: integer(2 ** 26),
    })
    .setUp('cuMemPoolCreate', handle('CUmemoryPool', 'own'), address('props'))
  for (const pool of ['default', 'current', 'own']) {
    group.each('CUmemPool_attribute', (attribute) =>
      group.ask('cuMemPoolGetAttribute', use(pool), attribute, out('cuuint64_t')),
    )
    for (const place of ['place', 'host'])
      group.ask('cuMemPoolGetAccess', out('CUmemAccess_flags'), use(pool), address(place))
  }
  return group.setUp('cuMemPoolDestroy', use('own'))
}

function context(spec: Spec): GroupBuilder {
  const group = withContext(spec, 'driver-context')
  const current = use('context')
  group
    .ask('cuCtxGetCurrent', handle('CUcontext'))
    .ask('cuCtxGetDevice', out('CUdevice'))
    .ask('cuCtxGetDevice_v2', out('CUdevice'), current)
    .ask('cuCtxGetApiVersion', current, out('unsigned int'))
    .ask('cuCtxGetFlags', out('unsigned int'))
    .ask('cuCtxGetId', current, out('unsigned long long', { compare: presence('a number of this process') }))
    .ask('cuCtxGetCacheConfig', out('CUfunc_cache'))
    .ask('cuCtxGetSharedMemConfig', out('CUsharedconfig'))
    .ask('cuCtxGetStreamPriorityRange', out('int'), out('int'))
    .ask('cuDevicePrimaryCtxGetState', use('device'), out('unsigned int'), out('int'))
    .ask('cuMemGetInfo', out('size_t', { compare: similar(others) }), out('size_t'))
    .ask('cuModuleGetLoadingMode', out('CUmoduleLoadingMode'))
    .ask('cuLogsCurrent', out('CUlogIterator'), zero)
  group.each('CUlimit', (limit) => group.ask('cuCtxGetLimit', out('size_t'), limit))
  group.each('CUexecAffinityType', (type) => group.ask('cuCtxGetExecAffinity', out('CUexecAffinityParam'), type))
  group.each('CUdevResourceType', (type) =>
    group.ask('cuCtxGetDevResource', current, out('CUdevResource', devResource), type),
  )
  return group
}

function coredump(spec: Spec): GroupBuilder {
  const group = withContext(spec, 'driver-coredump')
  for (const name of ['cuCoredumpGetAttributeGlobal', 'cuCoredumpGetAttribute'])
    group.each('CUcoredumpSettings', (setting, which) => {
      // These two are texts, the rest are flags of one or four bytes.
      const bytes = /_(FILE|PIPE)$/.test(which) ? 1024 : /_FLAGS$/.test(which) ? 4 : 1
      const isText = bytes > 4
      group.ask(
        name,
        setting,
        out('char', { count: bytes, ...(isText ? { compare: ignored(ownName) } : {}) }),
        out('size_t', { initial: bytes, ...(isText ? { compare: similar(ownName) } : {}) }),
      )
    })
  return group
}

function streams(spec: Spec): GroupBuilder {
  const group = withContext(spec, 'driver-streams')
  group
    .setUp('cuStreamCreate', handle('CUstream', 'blocking'), zero)
    .setUp('cuStreamCreate', handle('CUstream', 'nonBlocking'), member('CUstream_flags', 'CU_STREAM_NON_BLOCKING'))
    .setUp('cuStreamCreateWithPriority', handle('CUstream', 'urgent'), integer(1), integer(-2))
  const all: [string, Value][] = [
    ['default', zero],
    ['legacy', integer(1)],
    ['perThread', integer(2)],
    ...['blocking', 'nonBlocking', 'urgent'].map((name): [string, Value] => [name, use(name)]),
  ]
  for (const [, stream] of all) {
    group
      .ask('cuStreamGetFlags', stream, out('unsigned int'))
      .ask('cuStreamGetPriority', stream, out('int'))
      .ask('cuStreamGetDevice', stream, out('CUdevice'))
      .ask('cuStreamGetId', stream, out('unsigned long long', { compare: presence('a number of this process') }))
      .ask('cuStreamGetCtx', stream, handle('CUcontext'))
      .ask('cuStreamGetCtx_v2', stream, handle('CUcontext'), out('CUgreenCtx'))
      .ask('cuStreamGetGreenCtx', stream, out('CUgreenCtx'))
      .ask('cuStreamIsCapturing', stream, out('CUstreamCaptureStatus'))
      .ask('cuStreamQuery', stream)
      .ask(
        'cuStreamGetCaptureInfo',
        stream,
        out('CUstreamCaptureStatus'),
        out('cuuint64_t'),
        out('CUgraph'),
        out('void *'),
        out('void *'),
        out('size_t'),
      )
    group.each('CUlaunchAttributeID', (attribute) =>
      group.ask('cuStreamGetAttribute', stream, attribute, out('CUlaunchAttributeValue')),
    )
  }
  group
    .setUp('cuEventCreate', handle('CUevent', 'event'), zero)
    .ask('cuEventQuery', use('event'))
    .setUp('cuEventDestroy', use('event'))
  for (const name of ['blocking', 'nonBlocking', 'urgent']) group.setUp('cuStreamDestroy', use(name))
  return group
}

/** What each attribute of a pointer differs in between two processes. */
function pointerOut(name: string, base: string | undefined): ReturnType<typeof out> {
  const isAddress = /_(DEVICE_POINTER|HOST_POINTER|RANGE_START_ADDR)$/.test(name)
  if (isAddress)
    return out('char', {
      count: 16,
      fields: { '0:8': base === undefined ? presence('an address of this process') : offset(base) },
    })
  if (/_MAPPING_BASE_ADDR$/.test(name))
    return out('char', { count: 16, fields: { '0:8': presence('where the driver maps several allocations at once') } })
  if (/_(CONTEXT|MEMPOOL_HANDLE)$/.test(name))
    return out('char', { count: 16, fields: { '0:8': presence('a handle of this process') } })
  if (/_(BUFFER_ID|MEMORY_BLOCK_ID)$/.test(name))
    return out('char', { count: 16, fields: { '0:8': presence('a number of this process') } })
  if (/_P2P_TOKENS$/.test(name)) return out('char', { count: 16, compare: presence('tokens of this process') })
  return out('char', { count: 16 })
}

function pointers(spec: Spec): GroupBuilder {
  const group = withContext(spec, 'driver-pointers')
  const bytes = integer(65536)
  group
    .setUp('cuMemAlloc', handle('CUdeviceptr', 'device memory'), bytes)
    .setUp('cuMemAllocHost', handle('void *', 'pinned memory'), bytes)
    .setUp('cuMemHostAlloc', handle('void *', 'mapped memory'), bytes, integer(3))
    .setUp('cuMemAllocManaged', handle('CUdeviceptr', 'managed memory'), bytes, integer(1))
    .setUp('cuMemAllocAsync', handle('CUdeviceptr', 'pool memory'), bytes, zero)
    .setUp('cuStreamSynchronize', zero)
    .memory('host memory', 'char', {}, 4096)
  for (const kind of ['device', 'pinned', 'mapped', 'managed', 'pool']) {
    const name = `${kind} memory`
    for (const plus of [0, 260])
      group.each('CUpointer_attribute', (attribute, which) =>
        group.ask('cuPointerGetAttribute', pointerOut(which, name), attribute, use(name, plus)),
      )
    group
      .ask('cuMemGetAddressRange', out('CUdeviceptr', { compare: offset(name) }), out('size_t'), use(name, 260))
      .ask('cuMemHostGetFlags', out('unsigned int'), use(name))
      .ask('cuMemHostGetDevicePointer', out('CUdeviceptr', { compare: offset(name) }), use(name, 260), zero)
      .ask(
        'cuPointerGetAttributes',
        integer(3),
        {
          kind: 'members',
          enumeration: 'CUpointer_attribute',
          names: [
            'CU_POINTER_ATTRIBUTE_MEMORY_TYPE',
            'CU_POINTER_ATTRIBUTE_RANGE_START_ADDR',
            'CU_POINTER_ATTRIBUTE_RANGE_SIZE',
          ],
        },
        {
          kind: 'outs',
          items: [out('unsigned int'), out('CUdeviceptr', { compare: offset(name) }), out('size_t')],
        },
        use(name, 260),
      )
    group.each('CUmem_range_attribute', (attribute) =>
      group.ask('cuMemRangeGetAttribute', out('int'), integer(4), attribute, use(name), bytes),
    )
  }
  group.each('CUpointer_attribute', (attribute, which) =>
    group.ask('cuPointerGetAttribute', pointerOut(which, undefined), attribute, address('host memory')),
  )
  return group
    .setUp('cuMemFreeAsync', use('pool memory'), zero)
    .setUp('cuMemFree', use('managed memory'))
    .setUp('cuMemFreeHost', use('mapped memory'))
    .setUp('cuMemFreeHost', use('pinned memory'))
    .setUp('cuMemFree', use('device memory'))
}

function virtualMemory(spec: Spec): GroupBuilder {
  const group = withContext(spec, 'driver-virtual-memory')
  const bytes = integer(2 ** 21)
  const onDevice = member('CUmemLocationType', 'CU_MEM_LOCATION_TYPE_DEVICE')
  group
    .memory('prop', 'CUmemAllocationProp', {
      type: member('CUmemAllocationType', 'CU_MEM_ALLOCATION_TYPE_PINNED'),
      'location.type': onDevice,
      'location.id': zero,
    })
    .memory('access', 'CUmemAccessDesc', {
      'location.type': onDevice,
      'location.id': zero,
      flags: member('CUmemAccess_flags', 'CU_MEM_ACCESS_FLAGS_PROT_READWRITE'),
    })
    .memory('place', 'CUmemLocation', { type: onDevice, id: zero })
    .setUp('cuMemAddressReserve', handle('CUdeviceptr', 'range'), bytes, zero, zero, zero)
    .setUp('cuMemCreate', handle('CUmemGenericAllocationHandle', 'allocation'), bytes, address('prop'), zero)
    .setUp('cuMemMap', use('range'), bytes, zero, use('allocation'), zero)
    .ask('cuMemGetAccess', out('unsigned long long'), address('place'), use('range'))
    .setUp('cuMemSetAccess', use('range'), bytes, address('access'), integer(1))
    .ask('cuMemGetAccess', out('unsigned long long'), address('place'), use('range'))
    .ask('cuMemGetAllocationPropertiesFromHandle', out('CUmemAllocationProp'), use('allocation'))
    .ask('cuMemGetAddressRange', out('CUdeviceptr', { compare: offset('range') }), out('size_t'), use('range', 4096))
  group.each('CUpointer_attribute', (attribute, which) =>
    group.ask('cuPointerGetAttribute', pointerOut(which, 'range'), attribute, use('range', 4096)),
  )
  return group
    .setUp('cuMemUnmap', use('range'), bytes)
    .setUp('cuMemRelease', use('allocation'))
    .setUp('cuMemAddressFree', use('range'), bytes)
}

function arrays(spec: Spec): GroupBuilder {
  const float = member('CUarray_format', 'CU_AD_FORMAT_FLOAT')
  const group = withContext(spec, 'driver-arrays')
    .memory('shape', 'CUDA_ARRAY_DESCRIPTOR', {
      Width: integer(64),
      Height: integer(32),
      Format: float,
      NumChannels: integer(4),
    })
    .memory('solid', 'CUDA_ARRAY3D_DESCRIPTOR', {
      Width: integer(32),
      Height: integer(16),
      Depth: integer(8),
      Format: member('CUarray_format', 'CU_AD_FORMAT_HALF'),
      NumChannels: integer(2),
      Flags: integer(2),
    })
    .setUp('cuArrayCreate', handle('CUarray', 'flat'), address('shape'))
    .setUp('cuArray3DCreate', handle('CUarray', 'cube'), address('solid'))
    .setUp('cuMipmappedArrayCreate', handle('CUmipmappedArray', 'levels'), address('solid'), integer(3))
    .ask('cuMipmappedArrayGetLevel', handle('CUarray', 'level'), use('levels'), integer(1))
    .ask('cuMipmappedArrayGetLevel', out('CUarray'), use('levels'), integer(9))
    .ask('cuMipmappedArrayGetSparseProperties', out('CUDA_ARRAY_SPARSE_PROPERTIES'), use('levels'))
    .ask('cuMipmappedArrayGetMemoryRequirements', out('CUDA_ARRAY_MEMORY_REQUIREMENTS'), use('levels'), use('device'))
  for (const array of ['flat', 'cube', 'level']) {
    group
      .ask('cuArrayGetDescriptor', out('CUDA_ARRAY_DESCRIPTOR'), use(array))
      .ask('cuArray3DGetDescriptor', out('CUDA_ARRAY3D_DESCRIPTOR'), use(array))
      .ask('cuArrayGetMemoryRequirements', out('CUDA_ARRAY_MEMORY_REQUIREMENTS'), use(array), use('device'))
      .ask('cuArrayGetSparseProperties', out('CUDA_ARRAY_SPARSE_PROPERTIES'), use(array))
      .ask('cuArrayGetPlane', out('CUarray'), use(array), zero)
  }
  group
    .memory('resource', 'CUDA_RESOURCE_DESC', {
      resType: member('CUresourcetype', 'CU_RESOURCE_TYPE_ARRAY'),
      'res.array.hArray': use('flat'),
    })
    .memory('sampling', 'CUDA_TEXTURE_DESC', {
      filterMode: member('CUfilter_mode', 'CU_TR_FILTER_MODE_LINEAR'),
      maxAnisotropy: integer(4),
      maxMipmapLevelClamp: integer(1),
    })
    .setUp('cuTexObjectCreate', handle('CUtexObject', 'texture'), address('resource'), address('sampling'), none)
    .ask(
      'cuTexObjectGetResourceDesc',
      out('CUDA_RESOURCE_DESC', {
        fields: { '8:8': presence('a handle of this process'), '16:120': ignored('the rest of a union') },
      }),
      use('texture'),
    )
    .ask('cuTexObjectGetTextureDesc', out('CUDA_TEXTURE_DESC'), use('texture'))
    .ask('cuTexObjectGetResourceViewDesc', out('CUDA_RESOURCE_VIEW_DESC'), use('texture'))
    .memory('writable', 'CUDA_ARRAY3D_DESCRIPTOR', {
      Width: integer(32),
      Height: integer(16),
      Format: float,
      NumChannels: integer(1),
      Flags: integer(2),
    })
    .setUp('cuArray3DCreate', handle('CUarray', 'target'), address('writable'))
    .memory('surfaceResource', 'CUDA_RESOURCE_DESC', {
      resType: member('CUresourcetype', 'CU_RESOURCE_TYPE_ARRAY'),
      'res.array.hArray': use('target'),
    })
    .setUp('cuSurfObjectCreate', handle('CUsurfObject', 'surface'), address('surfaceResource'))
    .ask(
      'cuSurfObjectGetResourceDesc',
      out('CUDA_RESOURCE_DESC', {
        fields: { '8:8': presence('a handle of this process'), '16:120': ignored('the rest of a union') },
      }),
      use('surface'),
    )
    .setUp('cuSurfObjectDestroy', use('surface'))
    .setUp('cuTexObjectDestroy', use('texture'))
    .setUp('cuArrayDestroy', use('target'))
    .setUp('cuMipmappedArrayDestroy', use('levels'))
    .setUp('cuArrayDestroy', use('cube'))
    .setUp('cuArrayDestroy', use('flat'))
  return group
}

function textureReferences(spec: Spec): GroupBuilder {
  const options = { optional: 'texture references are deprecated' }
  const group = withContext(spec, 'driver-texture-references', options).setUp(
    'cuTexRefCreate',
    handle('CUtexref', 'texture'),
  )
  const of = use('texture')
  group
    .ask('cuTexRefGetAddress', out('CUdeviceptr'), of)
    .ask('cuTexRefGetArray', out('CUarray'), of)
    .ask('cuTexRefGetMipmappedArray', out('CUmipmappedArray'), of)
    .ask('cuTexRefGetFilterMode', out('CUfilter_mode'), of)
    .ask('cuTexRefGetFormat', out('CUarray_format'), out('int'), of)
    .ask('cuTexRefGetMipmapFilterMode', out('CUfilter_mode'), of)
    .ask('cuTexRefGetMipmapLevelBias', out('float'), of)
    .ask('cuTexRefGetMipmapLevelClamp', out('float'), out('float'), of)
    .ask('cuTexRefGetMaxAnisotropy', out('int'), of)
    .ask('cuTexRefGetBorderColor', out('float', { count: 4 }), of)
    .ask('cuTexRefGetFlags', out('unsigned int'), of)
  for (const dimension of [0, 1, 2]) group.ask('cuTexRefGetAddressMode', out('CUaddress_mode'), of, integer(dimension))
  return group.setUp('cuTexRefDestroy', of)
}

function graphs(spec: Spec): GroupBuilder {
  const group = withContext(spec, 'driver-graphs')
    .setUp('cuMemAlloc', handle('CUdeviceptr', 'memory'), integer(4096))
    .setUp('cuGraphCreate', handle('CUgraph', 'graph'), zero)
    .setUp('cuGraphAddEmptyNode', handle('CUgraphNode', 'first'), use('graph'), none, zero)
    .memory('fill', 'CUDA_MEMSET_NODE_PARAMS', {
      dst: use('memory'),
      pitch: integer(256),
      value: integer(7),
      elementSize: integer(4),
      width: integer(16),
      height: integer(2),
    })
    .setUp(
      'cuGraphAddMemsetNode',
      handle('CUgraphNode', 'second'),
      use('graph'),
      address('first'),
      integer(1),
      address('fill'),
      use('context'),
    )
    .setUp('cuEventCreate', handle('CUevent', 'event'), zero)
    .setUp(
      'cuGraphAddEventRecordNode',
      handle('CUgraphNode', 'third'),
      use('graph'),
      address('second'),
      integer(1),
      use('event'),
    )
  group
    .memory('copy', 'CUDA_MEMCPY3D', {
      srcMemoryType: member('CUmemorytype', 'CU_MEMORYTYPE_DEVICE'),
      srcDevice: use('memory'),
      srcPitch: integer(256),
      srcHeight: integer(2),
      dstMemoryType: member('CUmemorytype', 'CU_MEMORYTYPE_DEVICE'),
      dstDevice: use('memory', 2048),
      dstPitch: integer(256),
      dstHeight: integer(2),
      WidthInBytes: integer(64),
      Height: integer(2),
      Depth: integer(1),
    })
    .setUp(
      'cuGraphAddMemcpyNode',
      handle('CUgraphNode', 'fourth'),
      use('graph'),
      address('third'),
      integer(1),
      address('copy'),
      use('context'),
    )
    .setUp(
      'cuGraphAddEventWaitNode',
      handle('CUgraphNode', 'fifth'),
      use('graph'),
      address('fourth'),
      integer(1),
      use('event'),
    )
    .setUp('cuGraphCreate', handle('CUgraph', 'inner'), zero)
    .setUp('cuGraphAddEmptyNode', handle('CUgraphNode', 'innermost'), use('inner'), none, zero)
    .setUp(
      'cuGraphAddChildGraphNode',
      handle('CUgraphNode', 'sixth'),
      use('graph'),
      address('fifth'),
      integer(1),
      use('inner'),
    )
  const nodes = (count: number) => out('CUgraphNode', { count, compare: presence('handles of this process') })
  const number = out('size_t', { initial: 8 })
  group
    .ask('cuGraphGetNodes', use('graph'), nodes(8), number)
    .ask('cuGraphGetNodes', use('graph'), none, number)
    .ask('cuGraphGetRootNodes', use('graph'), nodes(8), number)
    .ask('cuGraphGetEdges', use('graph'), nodes(8), nodes(8), out('CUgraphEdgeData', { count: 8 }), number)
  for (const node of ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'])
    group
      .ask('cuGraphNodeGetType', use(node), out('CUgraphNodeType'))
      .ask('cuGraphNodeGetDependencies', use(node), nodes(8), out('CUgraphEdgeData', { count: 8 }), number)
      .ask('cuGraphNodeGetDependentNodes', use(node), nodes(8), out('CUgraphEdgeData', { count: 8 }), number)
  group
    .ask(
      'cuGraphMemsetNodeGetParams',
      use('second'),
      out('CUDA_MEMSET_NODE_PARAMS', { fields: { dst: offset('memory') } }),
    )
    .ask(
      'cuGraphMemcpyNodeGetParams',
      use('fourth'),
      out('CUDA_MEMCPY3D', { fields: { srcDevice: offset('memory'), dstDevice: offset('memory') } }),
    )
    .ask('cuGraphEventRecordNodeGetEvent', use('third'), handle('CUevent'))
    .ask('cuGraphEventRecordNodeGetEvent', use('first'), out('CUevent'))
    .ask('cuGraphEventWaitNodeGetEvent', use('fifth'), handle('CUevent'))
    .ask('cuGraphChildGraphNodeGetGraph', use('sixth'), handle('CUgraph'))
    .setUp('cuGraphInstantiate', handle('CUgraphExec', 'exec'), use('graph'), zero)
    .ask('cuGraphExecGetFlags', use('exec'), out('cuuint64_t'))
    .ask('cuGraphNodeGetEnabled', use('exec'), use('second'), out('unsigned int'))
    .setUp('cuGraphExecDestroy', use('exec'))
    .setUp('cuGraphDestroy', use('graph'))
    .setUp('cuGraphDestroy', use('inner'))
    .setUp('cuEventDestroy', use('event'))
    .setUp('cuMemFree', use('memory'))
  return group
}

function entryPoints(spec: Spec): GroupBuilder {
  const group = new GroupBuilder(spec, 'driver-entry-points').setUp('cuInit', zero)
  const names = ['cuMemAlloc', 'cuGetProcAddress', 'cuStreamGetCtx', 'cuLaunchKernelEx', 'cuNoSuchFunction']
  for (const name of names)
    for (const version of [2000, 3020, 11000, 12050, 13000, 99000])
      for (const flags of [0, 1, 2])
        group.ask(
          'cuGetProcAddress',
          text(name),
          out('void *', { compare: presence('an address of this process') }),
          integer(version),
          integer(flags),
          out('CUdriverProcAddressQueryResult'),
        )
  return group
}

function peers(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'driver-peers', { devices: 2 })
  const operations = spec.members('CUatomicOperation')
  group.setUp('cuDeviceGet', out('CUdevice', { save: 'peer' }), integer(1))
  for (const [from, to] of [
    ['device', 'peer'],
    ['peer', 'device'],
  ] as const) {
    group.ask('cuDeviceCanAccessPeer', out('int'), use(from), use(to))
    group.each('CUdevice_P2PAttribute', (attribute) =>
      group.ask('cuDeviceGetP2PAttribute', out('int'), attribute, use(from), use(to)),
    )
    group.ask(
      'cuDeviceGetP2PAtomicCapabilities',
      out('unsigned int', { count: operations.length }),
      { kind: 'members', enumeration: 'CUatomicOperation', names: operations },
      integer(operations.length),
      use(from),
      use(to),
    )
  }
  return group
}

function functions(spec: Spec, suffix: string, image: string, optional?: string): GroupBuilder {
  const group = withContext(spec, `driver-functions-${suffix}`, optional === undefined ? {} : { optional })
    .setUp('cuModuleLoad', handle('CUmodule', 'module'), file(image))
    .setUp('cuLibraryLoadFromFile', handle('CUlibrary', 'library'), file(image), none, none, zero, none, none, zero)
    .ask('cuModuleGetFunctionCount', out('unsigned int'), use('module'))
    .ask(
      'cuModuleEnumerateFunctions',
      out('CUfunction', { count: 2, compare: presence('handles of this process') }),
      integer(2),
      use('module'),
    )
    .ask('cuModuleGetFunction', out('CUfunction'), use('module'), text('noSuchFunction'))
    .ask('cuLibraryGetKernelCount', out('unsigned int'), use('library'))
    .ask(
      'cuLibraryEnumerateKernels',
      out('CUkernel', { count: 2, compare: presence('handles of this process') }),
      integer(2),
      use('library'),
    )
    .ask('cuLibraryGetModule', handle('CUmodule'), use('library'))
    .ask('cuLibraryGetUnifiedFunction', out('void *'), use('library'), text('noSuchFunction'))
    .ask('cuLibraryGetManaged', handle('CUdeviceptr'), out('size_t'), use('library'), text('total'))
  for (const name of ['scale', 'counter', 'noSuchVariable'])
    group
      .ask('cuModuleGetGlobal', handle('CUdeviceptr'), out('size_t'), use('module'), text(name))
      .ask('cuLibraryGetGlobal', handle('CUdeviceptr'), out('size_t'), use('library'), text(name))
  for (const name of ['manyParameters', 'noParameters']) {
    group
      .setUp('cuModuleGetFunction', handle('CUfunction', name), use('module'), text(name))
      .setUp('cuLibraryGetKernel', handle('CUkernel', `kernel ${name}`), use('library'), text(name))
      .ask('cuFuncIsLoaded', out('CUfunctionLoadingState'), use(name))
      .ask('cuFuncGetModule', handle('CUmodule'), use(name))
      .ask('cuFuncGetName', out('const char *', { follow: 'text' }), use(name))
      .ask('cuKernelGetName', out('const char *', { follow: 'text' }), use(`kernel ${name}`))
      .ask('cuKernelGetFunction', handle('CUfunction'), use(`kernel ${name}`))
      .ask('cuKernelGetLibrary', handle('CUlibrary'), use(`kernel ${name}`))
    group.each('CUfunction_attribute', (attribute) =>
      group
        .ask('cuFuncGetAttribute', out('int'), attribute, use(name))
        .ask('cuKernelGetAttribute', out('int'), attribute, use(`kernel ${name}`), use('device')),
    )
    for (const index of [0, 1, 2, 3, 4, 5])
      group
        .ask('cuFuncGetParamInfo', use(name), integer(index), out('size_t'), out('size_t'))
        .ask('cuKernelGetParamInfo', use(`kernel ${name}`), integer(index), out('size_t'), out('size_t'))
    occupancy(group, name)
  }
  kernelNode(group)
  return group.setUp('cuLibraryUnload', use('library')).setUp('cuModuleUnload', use('module'))
}

function kernelNode(group: GroupBuilder): void {
  group
    .setUp('cuGraphCreate', handle('CUgraph', 'graph'), zero)
    .memory('launch', 'CUDA_KERNEL_NODE_PARAMS', {
      func: use('noParameters'),
      gridDimX: integer(3),
      gridDimY: integer(2),
      gridDimZ: integer(1),
      blockDimX: integer(64),
      blockDimY: integer(2),
      blockDimZ: integer(1),
      sharedMemBytes: integer(512),
    })
    .setUp('cuGraphAddKernelNode', handle('CUgraphNode', 'node'), use('graph'), none, zero, address('launch'))
    .ask(
      'cuGraphKernelNodeGetParams',
      use('node'),
      out('CUDA_KERNEL_NODE_PARAMS', {
        fields: {
          func: presence('a handle of this process'),
          kernelParams: presence('an address of this process'),
          extra: presence('an address of this process'),
          kern: presence('a handle of this process'),
          ctx: presence('a handle of this process'),
        },
      }),
    )
    .each('CUlaunchAttributeID', (attribute) =>
      group.ask('cuGraphKernelNodeGetAttribute', use('node'), attribute, out('CUlaunchAttributeValue')),
    )
    .setUp('cuGraphDestroy', use('graph'))
}

function occupancy(group: GroupBuilder, name: string): void {
  const of = use(name)
  for (const threads of [1, 32, 100, 256, 1024])
    for (const shared of [0, 1024, 40_000]) {
      group
        .ask('cuOccupancyMaxActiveBlocksPerMultiprocessor', out('int'), of, integer(threads), integer(shared))
        .ask(
          'cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags',
          out('int'),
          of,
          integer(threads),
          integer(shared),
          integer(1),
        )
    }
  for (const blocks of [1, 2, 8])
    group.ask('cuOccupancyAvailableDynamicSMemPerBlock', out('size_t'), of, integer(blocks), integer(128))
  for (const limit of [0, 128])
    group
      .ask('cuOccupancyMaxPotentialBlockSize', out('int'), out('int'), of, none, integer(512), integer(limit))
      .ask(
        'cuOccupancyMaxPotentialBlockSizeWithFlags',
        out('int'),
        out('int'),
        of,
        none,
        integer(512),
        integer(limit),
        zero,
      )
  for (const width of [1, 2, 4]) {
    const cluster = `${name} cluster ${width}`
    group
      .memory(cluster, 'CUlaunchAttribute', {
        id: member('CUlaunchAttributeID', 'CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION'),
        'value.clusterDim.x': integer(width),
        'value.clusterDim.y': integer(1),
        'value.clusterDim.z': integer(1),
      })
      .memory(`${cluster} launch`, 'CUlaunchConfig', {
        gridDimX: integer(64),
        gridDimY: integer(1),
        gridDimZ: integer(1),
        blockDimX: integer(128),
        blockDimY: integer(1),
        blockDimZ: integer(1),
        attrs: address(cluster),
        numAttrs: integer(1),
      })
      .ask('cuOccupancyMaxActiveClusters', out('int'), of, address(`${cluster} launch`))
      .ask('cuOccupancyMaxPotentialClusterSize', out('int'), of, address(`${cluster} launch`))
  }
}
