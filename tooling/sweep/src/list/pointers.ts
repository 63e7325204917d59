import type { Spec } from '../spec.js'
import { zero } from './apiNames.js'
import { unwritten, withContext, withRuntimeDevice } from './start.js'
import { address, type Comparison, type GroupBuilder, handle, integer, offset, out, presence, use } from './steps.js'

/** The out-parameter of a pointer's attribute, with how the answers of two processes are compared. */
export function pointerOut(name: string, base: string | undefined): ReturnType<typeof out> {
  const first = (comparison: Comparison) => out('char', { count: 16, fields: { '0:8': comparison } })
  if (/_(DEVICE_POINTER|HOST_POINTER|RANGE_START_ADDR)$/.test(name))
    return first(base === undefined ? presence('an address of this process') : offset(base))
  if (/_MAPPING_BASE_ADDR$/.test(name)) return first(presence('where the driver maps several allocations at once'))
  if (/_(CONTEXT|MEMPOOL_HANDLE)$/.test(name)) return first(presence('a handle of this process'))
  if (/_(BUFFER_ID|MEMORY_BLOCK_ID)$/.test(name)) return first(presence('a number of this process'))
  return out('char', {
    count: 16,
    ...(/_P2P_TOKENS$/.test(name) ? { compare: presence('tokens of this process') } : {}),
  })
}

export function driverPointers(spec: Spec): GroupBuilder {
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

export function runtimePointers(spec: Spec): GroupBuilder {
  const bytes = integer(65536)
  const group = withRuntimeDevice(spec, 'runtime-pointers')
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
