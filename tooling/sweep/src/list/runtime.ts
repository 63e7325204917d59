// The questions for the CUDA runtime.
import type { Spec } from '../spec.js'
import { unknownCodes } from './driver.js'
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

/** libcudart leaves these bytes as they were on its stack. */
const unwritten = ignored('libcudart does not write it')

const zero = integer(0)
const others = 'memory of other processes on the device comes and goes'

export function runtimeGroups(spec: Spec): Group[] {
  const builders = [
    errors(spec),
    device(spec),
    pools(spec),
    streams(spec),
    pointers(spec),
    arrays(spec),
    graphs(spec),
    entryPoints(spec),
    peers(spec),
    functions(spec),
  ]
  return builders.map((builder) => builder.build())
}

/** Groups with device 0 chosen and its context made. */
function withDevice(spec: Spec, name: string, options: { devices?: number } = {}): GroupBuilder {
  return new GroupBuilder(spec, name, options).setUp('cudaSetDevice', zero)
}

function errors(spec: Spec): GroupBuilder {
  const group = new GroupBuilder(spec, 'runtime-errors', { devices: 0 })
  for (const name of ['cudaGetErrorName', 'cudaGetErrorString']) {
    group.each('cudaError', (code) => group.ask(name, code))
    for (const code of unknownCodes) group.ask(name, integer(code))
  }
  group.ask('cudaRuntimeGetVersion', out('int')).ask('cudaDriverGetVersion', out('int'))
  group.each('cudaChannelFormatKind', (format) =>
    group.ask('cudaCreateChannelDesc', integer(8), integer(16), integer(32), integer(5), format),
  )
  return group.ask('cudaGetDeviceCount', out('int')).ask('cudaPeekAtLastError').ask('cudaGetLastError')
}

function device(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'runtime-device')
    .ask('cudaGetDeviceCount', out('int'))
    .ask('cudaGetDevice', out('int'))
    .ask('cudaGetDeviceProperties', out('cudaDeviceProp'), zero)
    .ask('cudaGetDeviceProperties', out('cudaDeviceProp'), integer(4096))
    .ask('cudaGetDeviceFlags', out('unsigned int'))
    .ask('cudaDeviceGetCacheConfig', out('cudaFuncCache'))
    .ask('cudaDeviceGetSharedMemConfig', out('cudaSharedMemConfig'))
    .ask('cudaDeviceGetStreamPriorityRange', out('int'), out('int'))
    .ask('cudaDeviceGetPCIBusId', out('char', { count: 32, save: 'bus' }), integer(32), zero)
    .ask('cudaDeviceGetByPCIBusId', out('int'), address('bus'))
    .ask('cudaDeviceCanAccessPeer', out('int'), zero, zero)
    .ask('cudaMemGetInfo', out('size_t', { compare: similar(others) }), out('size_t'))
    .ask('cudaPeekAtLastError')
    .ask('cudaGetLastError')
    .ask('cudaLogsCurrent', out('cudaLogIterator'), zero)
  group.each('cudaDeviceAttr', (attribute) => group.ask('cudaDeviceGetAttribute', out('int'), attribute, zero))
  for (const code of [0, -1, 100_000]) group.ask('cudaDeviceGetAttribute', out('int'), integer(code), zero)
  group.each('cudaLimit', (limit) => group.ask('cudaDeviceGetLimit', out('size_t'), limit))
  group.each('cudaGraphMemAttributeType', (attribute) =>
    group.ask('cudaDeviceGetGraphMemAttribute', zero, attribute, out('unsigned long long')),
  )
  group.memory('wanted', 'cudaDeviceProp', { major: integer(9) }).ask('cudaChooseDevice', out('int'), address('wanted'))
  const shapes = [
    [32, 0, 0, 0],
    [8, 8, 8, 8],
    [16, 16, 0, 0],
  ]
  for (const [index, [x = 0, y = 0, z = 0, w = 0]] of shapes.entries()) {
    const fields = { x: integer(x), y: integer(y), z: integer(z), w: integer(w) }
    group
      .memory(`format ${index}`, 'cudaChannelFormatDesc', {
        ...fields,
        f: member('cudaChannelFormatKind', 'cudaChannelFormatKindUnsigned'),
      })
      .ask('cudaDeviceGetTexture1DLinearMaxWidth', out('size_t'), address(`format ${index}`), zero)
  }
  const operations = spec.members('cudaAtomicOperation')
  return group.ask(
    'cudaDeviceGetHostAtomicCapabilities',
    out('unsigned int', { count: operations.length }),
    { kind: 'members', enumeration: 'cudaAtomicOperation', names: operations },
    integer(operations.length),
    zero,
  )
}

function pools(spec: Spec): GroupBuilder {
  const pinned = member('cudaMemAllocationType', 'cudaMemAllocationTypePinned')
  const onDevice = member('cudaMemLocationType', 'cudaMemLocationTypeDevice')
  const group = withDevice(spec, 'runtime-pools')
    .ask('cudaDeviceGetDefaultMemPool', handle('cudaMemPool_t', 'default'), zero)
    .ask('cudaDeviceGetMemPool', handle('cudaMemPool_t', 'current'), zero)
    .memory('place', 'cudaMemLocation', { type: onDevice, id: zero })
    .memory('host', 'cudaMemLocation', { type: member('cudaMemLocationType', 'cudaMemLocationTypeHost') })
    .ask('cudaMemGetDefaultMemPool', handle('cudaMemPool_t'), address('place'), pinned)
    .ask('cudaMemGetMemPool', handle('cudaMemPool_t'), address('place'), pinned)
    .memory('props', 'cudaMemPoolProps', {
      allocType: pinned,
      'location.type': onDevice,
      'location.id': zero,
      maxSize: integer(2 ** 26),
    })
    .setUp('cudaMemPoolCreate', handle('cudaMemPool_t', 'own'), address('props'))
  for (const pool of ['default', 'current', 'own']) {
    group.each('cudaMemPoolAttr', (attribute) =>
      group.ask('cudaMemPoolGetAttribute', use(pool), attribute, out('unsigned long long')),
    )
    for (const place of ['place', 'host'])
      group.ask('cudaMemPoolGetAccess', out('cudaMemAccessFlags'), use(pool), address(place))
  }
  return group.setUp('cudaMemPoolDestroy', use('own'))
}

function streams(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'runtime-streams')
    .setUp('cudaStreamCreate', handle('cudaStream_t', 'blocking'))
    .setUp('cudaStreamCreateWithFlags', handle('cudaStream_t', 'nonBlocking'), integer(1))
    .setUp('cudaStreamCreateWithPriority', handle('cudaStream_t', 'urgent'), integer(1), integer(-2))
  const names = ['blocking', 'nonBlocking', 'urgent']
  const all: Value[] = [zero, integer(1), integer(2), ...names.map((name) => use(name))]
  for (const stream of all) {
    group
      .ask('cudaStreamGetFlags', stream, out('unsigned int'))
      .ask('cudaStreamGetPriority', stream, out('int'))
      .ask('cudaStreamGetDevice', stream, out('int'))
      .ask('cudaStreamGetId', stream, out('unsigned long long', { compare: presence('a number of this process') }))
      .ask('cudaStreamIsCapturing', stream, out('cudaStreamCaptureStatus'))
      .ask('cudaStreamQuery', stream)
      .ask(
        'cudaStreamGetCaptureInfo',
        stream,
        out('cudaStreamCaptureStatus'),
        out('unsigned long long'),
        out('cudaGraph_t'),
        out('void *'),
        out('void *'),
        out('size_t'),
      )
    group.each('cudaLaunchAttributeID', (attribute) =>
      group.ask('cudaStreamGetAttribute', stream, attribute, out('cudaLaunchAttributeValue')),
    )
  }
  group
    .setUp('cudaEventCreate', handle('cudaEvent_t', 'event'))
    .ask('cudaEventQuery', use('event'))
    .setUp('cudaEventDestroy', use('event'))
  for (const name of names) group.setUp('cudaStreamDestroy', use(name))
  return group
}

function pointers(spec: Spec): GroupBuilder {
  const bytes = integer(65536)
  const group = withDevice(spec, 'runtime-pointers')
    .setUp('cudaMalloc', handle('void *', 'device memory'), bytes)
    .setUp('cudaMallocHost', handle('void *', 'pinned memory'), bytes)
    .setUp('cudaHostAlloc', handle('void *', 'mapped memory'), bytes, integer(3))
    .setUp('cudaMallocManaged', handle('void *', 'managed memory'), bytes, integer(1))
    .setUp('cudaMallocAsync', handle('void *', 'pool memory'), bytes, zero)
    .setUp('cudaStreamSynchronize', zero)
    .memory('host memory', 'char', {}, 4096)
  for (const kind of ['device', 'pinned', 'mapped', 'managed', 'pool']) {
    const name = `${kind} memory`
    for (const plus of [0, 260])
      group.ask(
        'cudaPointerGetAttributes',
        out('cudaPointerAttributes', {
          fields: { devicePointer: offset(name), hostPointer: offset(name), '24:64': unwritten },
        }),
        use(name, plus),
      )
    group
      .ask('cudaHostGetFlags', out('unsigned int'), use(name))
      .ask('cudaHostGetDevicePointer', out('void *', { compare: offset(name) }), use(name, 260), zero)
    group.each('cudaMemRangeAttribute', (attribute) =>
      group.ask('cudaMemRangeGetAttribute', out('int'), integer(4), attribute, use(name), bytes),
    )
  }
  return group
    .ask(
      'cudaPointerGetAttributes',
      out('cudaPointerAttributes', {
        fields: {
          devicePointer: presence('an address of this process'),
          hostPointer: presence('an address of this process'),
          '24:64': unwritten,
        },
      }),
      address('host memory'),
    )
    .setUp('cudaFreeAsync', use('pool memory'), zero)
    .setUp('cudaFree', use('managed memory'))
    .setUp('cudaFreeHost', use('mapped memory'))
    .setUp('cudaFreeHost', use('pinned memory'))
    .setUp('cudaFree', use('device memory'))
}

function arrays(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'runtime-arrays')
    .memory('format', 'cudaChannelFormatDesc', {
      x: integer(32),
      y: integer(32),
      f: member('cudaChannelFormatKind', 'cudaChannelFormatKindFloat'),
    })
    .setUp('cudaMallocArray', handle('cudaArray_t', 'array'), address('format'), integer(64), integer(32), zero)
    .ask('cudaArrayGetInfo', out('cudaChannelFormatDesc'), out('cudaExtent'), out('unsigned int'), use('array'))
    .ask('cudaArrayGetMemoryRequirements', out('cudaArrayMemoryRequirements'), use('array'), zero)
    .ask('cudaArrayGetSparseProperties', out('cudaArraySparseProperties'), use('array'))
    .ask('cudaArrayGetPlane', out('cudaArray_t'), use('array'), zero)
    .ask('cudaGetChannelDesc', out('cudaChannelFormatDesc'), use('array'))
  const resource = () =>
    out('cudaResourceDesc', {
      fields: {
        '8:8': presence('a handle of this process'),
        '16:120': { how: 'ignored', reason: 'the rest of a union' },
      },
    })
  return group
    .memory('resource', 'cudaResourceDesc', {
      resType: member('cudaResourceType', 'cudaResourceTypeArray'),
      'res.array.array': use('array'),
    })
    .memory('sampling', 'cudaTextureDesc', {
      filterMode: member('cudaTextureFilterMode', 'cudaFilterModeLinear'),
      maxAnisotropy: integer(4),
    })
    .setUp(
      'cudaCreateTextureObject',
      handle('cudaTextureObject_t', 'texture'),
      address('resource'),
      address('sampling'),
      none,
    )
    .ask('cudaGetTextureObjectResourceDesc', resource(), use('texture'))
    .ask('cudaGetTextureObjectTextureDesc', out('cudaTextureDesc', { fields: { '24:16': unwritten } }), use('texture'))
    .ask(
      'cudaGetTextureObjectResourceViewDesc',
      out('cudaResourceViewDesc', { compare: ignored('the texture has no view, and libcudart writes nothing') }),
      use('texture'),
    )
    .setUp('cudaDestroyTextureObject', use('texture'))
    .setUp('cudaMallocArray', handle('cudaArray_t', 'target'), address('format'), integer(64), integer(32), integer(2))
    .memory('surfaceResource', 'cudaResourceDesc', {
      resType: member('cudaResourceType', 'cudaResourceTypeArray'),
      'res.array.array': use('target'),
    })
    .setUp('cudaCreateSurfaceObject', handle('cudaSurfaceObject_t', 'surface'), address('surfaceResource'))
    .ask('cudaGetSurfaceObjectResourceDesc', resource(), use('surface'))
    .setUp('cudaDestroySurfaceObject', use('surface'))
    .setUp('cudaFreeArray', use('target'))
    .setUp('cudaFreeArray', use('array'))
}

function graphs(spec: Spec): GroupBuilder {
  const nodes = (count: number) => out('cudaGraphNode_t', { count, compare: presence('handles of this process') })
  const number = out('size_t', { initial: 8 })
  const after = (node: string) => [use('graph'), address(node), integer(1)] as const
  const group = withDevice(spec, 'runtime-graphs')
    .setUp('cudaMalloc', handle('void *', 'memory'), integer(4096))
    .setUp('cudaEventCreate', handle('cudaEvent_t', 'event'))
    .setUp('cudaGraphCreate', handle('cudaGraph_t', 'graph'), zero)
    .setUp('cudaGraphCreate', handle('cudaGraph_t', 'inner'), zero)
    .setUp('cudaGraphAddEmptyNode', handle('cudaGraphNode_t', 'innermost'), use('inner'), none, zero)
    .memory('fill', 'cudaMemsetParams', {
      dst: use('memory'),
      pitch: integer(256),
      value: integer(7),
      elementSize: integer(4),
      width: integer(16),
      height: integer(2),
    })
    .setUp('cudaGraphAddEmptyNode', handle('cudaGraphNode_t', 'first'), use('graph'), none, zero)
    .setUp('cudaGraphAddMemsetNode', handle('cudaGraphNode_t', 'second'), ...after('first'), address('fill'))
    .setUp('cudaGraphAddEventRecordNode', handle('cudaGraphNode_t', 'third'), ...after('second'), use('event'))
    .setUp('cudaGraphAddEventWaitNode', handle('cudaGraphNode_t', 'fourth'), ...after('third'), use('event'))
    .setUp('cudaGraphAddChildGraphNode', handle('cudaGraphNode_t', 'fifth'), ...after('fourth'), use('inner'))
    .setUp(
      'cudaGraphAddMemcpyNode1D',
      handle('cudaGraphNode_t', 'sixth'),
      ...after('fifth'),
      use('memory', 2048),
      use('memory'),
      integer(256),
      member('cudaMemcpyKind', 'cudaMemcpyDeviceToDevice'),
    )
    .ask('cudaGraphGetNodes', use('graph'), nodes(8), number)
    .ask('cudaGraphGetRootNodes', use('graph'), nodes(8), number)
    .ask('cudaGraphGetEdges', use('graph'), nodes(8), nodes(8), out('cudaGraphEdgeData', { count: 8 }), number)
  for (const node of ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'])
    group
      .ask('cudaGraphNodeGetType', use(node), out('cudaGraphNodeType'))
      .ask('cudaGraphNodeGetDependencies', use(node), nodes(8), out('cudaGraphEdgeData', { count: 8 }), number)
      .ask('cudaGraphNodeGetDependentNodes', use(node), nodes(8), out('cudaGraphEdgeData', { count: 8 }), number)
  return group
    .ask('cudaGraphMemsetNodeGetParams', use('second'), out('cudaMemsetParams', { fields: { dst: offset('memory') } }))
    .ask('cudaGraphEventRecordNodeGetEvent', use('third'), handle('cudaEvent_t'))
    .ask('cudaGraphEventWaitNodeGetEvent', use('fourth'), handle('cudaEvent_t'))
    .ask('cudaGraphChildGraphNodeGetGraph', use('fifth'), handle('cudaGraph_t'))
    .setUp('cudaGraphInstantiate', handle('cudaGraphExec_t', 'exec'), use('graph'), zero)
    .ask('cudaGraphExecGetFlags', use('exec'), out('unsigned long long'))
    .ask('cudaGraphNodeGetEnabled', use('exec'), use('second'), out('unsigned int'))
    .setUp('cudaGraphExecDestroy', use('exec'))
    .setUp('cudaGraphDestroy', use('graph'))
    .setUp('cudaGraphDestroy', use('inner'))
    .setUp('cudaEventDestroy', use('event'))
    .setUp('cudaFree', use('memory'))
}

function entryPoints(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'runtime-entry-points')
  for (const name of ['cuMemAlloc', 'cuGetProcAddress', 'cuNoSuchFunction']) {
    for (const version of [3020, 12050, 13000])
      group.ask(
        'cudaGetDriverEntryPointByVersion',
        text(name),
        out('void *', { compare: presence('an address of this process') }),
        integer(version),
        zero,
        out('cudaDriverEntryPointQueryResult'),
      )
    group.ask(
      'cudaGetDriverEntryPoint',
      text(name),
      out('void *', { compare: presence('an address of this process') }),
      zero,
      out('cudaDriverEntryPointQueryResult'),
    )
  }
  return group
}

function peers(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'runtime-peers', { devices: 2 })
  const operations = spec.members('cudaAtomicOperation')
  for (const [from, to] of [
    [0, 1],
    [1, 0],
  ] as const) {
    group.ask('cudaDeviceCanAccessPeer', out('int'), integer(from), integer(to))
    group.each('cudaDeviceP2PAttr', (attribute) =>
      group.ask('cudaDeviceGetP2PAttribute', out('int'), attribute, integer(from), integer(to)),
    )
    group.ask(
      'cudaDeviceGetP2PAtomicCapabilities',
      out('unsigned int', { count: operations.length }),
      { kind: 'members', enumeration: 'cudaAtomicOperation', names: operations },
      integer(operations.length),
      integer(from),
      integer(to),
    )
  }
  return group
}

function functions(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'runtime-functions')
    .setUp(
      'cudaLibraryLoadFromFile',
      handle('cudaLibrary_t', 'library'),
      file('questions.ptx'),
      none,
      none,
      zero,
      none,
      none,
      zero,
    )
    .ask('cudaLibraryGetKernelCount', out('unsigned int'), use('library'))
    .ask(
      'cudaLibraryEnumerateKernels',
      out('cudaKernel_t', { count: 2, compare: presence('handles of this process') }),
      integer(2),
      use('library'),
    )
    .ask('cudaLibraryGetKernel', out('cudaKernel_t'), use('library'), text('noSuchFunction'))
    .ask('cudaLibraryGetManaged', handle('void *'), out('size_t'), use('library'), text('total'))
  for (const name of ['scale', 'counter', 'noSuchVariable'])
    group.ask('cudaLibraryGetGlobal', handle('void *'), out('size_t'), use('library'), text(name))
  for (const name of ['manyParameters', 'noParameters']) {
    const of = use(name)
    group
      .setUp('cudaLibraryGetKernel', handle('cudaKernel_t', name), use('library'), text(name))
      .ask('cudaFuncGetAttributes', out('cudaFuncAttributes'), of)
      .ask('cudaFuncGetName', out('const char *', { follow: 'text' }), of)
    for (const index of [0, 1, 2, 3, 4, 5])
      group.ask('cudaFuncGetParamInfo', of, integer(index), out('size_t'), out('size_t'))
    for (const threads of [1, 32, 100, 256, 1024])
      for (const shared of [0, 1024, 40_000])
        group
          .ask('cudaOccupancyMaxActiveBlocksPerMultiprocessor', out('int'), of, integer(threads), integer(shared))
          .ask(
            'cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags',
            out('int'),
            of,
            integer(threads),
            integer(shared),
            integer(1),
          )
    for (const blocks of [1, 2, 8])
      group.ask('cudaOccupancyAvailableDynamicSMemPerBlock', out('size_t'), of, integer(blocks), integer(128))
    for (const width of [1, 2, 4]) {
      const cluster = `${name} cluster ${width}`
      group
        .memory(cluster, 'cudaLaunchAttribute', {
          id: member('cudaLaunchAttributeID', 'cudaLaunchAttributeClusterDimension'),
          'val.clusterDim.x': integer(width),
          'val.clusterDim.y': integer(1),
          'val.clusterDim.z': integer(1),
        })
        .memory(`${cluster} launch`, 'cudaLaunchConfig_t', {
          'gridDim.x': integer(64),
          'gridDim.y': integer(1),
          'gridDim.z': integer(1),
          'blockDim.x': integer(128),
          'blockDim.y': integer(1),
          'blockDim.z': integer(1),
          attrs: address(cluster),
          numAttrs: integer(1),
        })
        .ask('cudaOccupancyMaxActiveClusters', out('int'), of, address(`${cluster} launch`))
        .ask('cudaOccupancyMaxPotentialClusterSize', out('int'), of, address(`${cluster} launch`))
    }
  }
  return group.setUp('cudaLibraryUnload', use('library'))
}
