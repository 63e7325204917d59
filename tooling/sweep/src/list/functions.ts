import type { Spec } from '../spec.js'
import { type ApiNames, driver, runtime, zero } from './apiNames.js'
import { withContext, withRuntimeDevice } from './start.js'
import { address, file, type GroupBuilder, handle, integer, member, none, out, presence, text, use } from './steps.js'

export function driverFunctions(spec: Spec, suffix: string, image: string, optional?: string): GroupBuilder {
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
    occupancy(group, driver, name, () => askBlockSize(group, name))
  }
  kernelNode(group)
  return group.setUp('cuLibraryUnload', use('library')).setUp('cuModuleUnload', use('module'))
}

function kernelNode(group: GroupBuilder): void {
  group
    .setUp('cuGraphCreate', handle('CUgraph', 'graph'), zero)
    .memory('launch', 'CUDA_KERNEL_NODE_PARAMS', {
      func: use('noParameters'),
      ...driver.dim('gridDim', [3, 2, 1]),
      ...driver.dim('blockDim', [64, 2, 1]),
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

/** How many blocks and clusters of a function fit. */
function occupancy(
  group: GroupBuilder,
  apiNames: ApiNames,
  name: string,
  askBlockSize: () => void = () => undefined,
): void {
  const { api } = apiNames
  const of = use(name)
  for (const threads of [1, 32, 100, 256, 1024])
    for (const shared of [0, 1024, 40_000]) {
      const shape = [of, integer(threads), integer(shared)] as const
      group
        .ask(api('OccupancyMaxActiveBlocksPerMultiprocessor'), out('int'), ...shape)
        .ask(api('OccupancyMaxActiveBlocksPerMultiprocessorWithFlags'), out('int'), ...shape, integer(1))
    }
  for (const blocks of [1, 2, 8])
    group.ask(api('OccupancyAvailableDynamicSMemPerBlock'), out('size_t'), of, integer(blocks), integer(128))
  askBlockSize()
  for (const width of [1, 2, 4]) {
    const cluster = `${name} cluster ${width}`
    group
      .memory(cluster, apiNames.attribute, {
        id: member(...apiNames.clusterDimension),
        ...apiNames.clusterDim([width, 1, 1]),
      })
      .memory(`${cluster} launch`, apiNames.launchConfig, {
        ...apiNames.dim('gridDim', [64, 1, 1]),
        ...apiNames.dim('blockDim', [128, 1, 1]),
        attrs: address(cluster),
        numAttrs: integer(1),
      })
      .ask(api('OccupancyMaxActiveClusters'), out('int'), of, address(`${cluster} launch`))
      .ask(api('OccupancyMaxPotentialClusterSize'), out('int'), of, address(`${cluster} launch`))
  }
}

function askBlockSize(group: GroupBuilder, name: string): void {
  const of = use(name)
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
}

export function runtimeFunctions(spec: Spec): GroupBuilder {
  const group = withRuntimeDevice(spec, 'runtime-functions')
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
    occupancy(group, runtime, name)
  }
  return group.setUp('cudaLibraryUnload', use('library'))
}
