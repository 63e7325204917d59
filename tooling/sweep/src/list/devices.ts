import type { Spec } from '../spec.js'
import { driver, runtime, zero } from './apiNames.js'
import { hostAtomics } from './peers.js'
import { others, withContext, withDevice, withRuntimeDevice } from './start.js'
import {
  address,
  type GroupBuilder,
  handle,
  ignored,
  integer,
  member,
  out,
  presence,
  similar,
  text,
  use,
} from './steps.js'

const driversOwn = 'data of the driver for itself'
const devResource = { fields: { _internal_padding: ignored(driversOwn), '108:36': ignored(driversOwn) } }
const ownName = 'a text with the number of the process in it'

export function driverDevice(spec: Spec): GroupBuilder {
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
  return hostAtomics(group, driver)
}

export function driverContext(spec: Spec): GroupBuilder {
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

export function driverCoredump(spec: Spec): GroupBuilder {
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

export function runtimeDevice(spec: Spec): GroupBuilder {
  const group = withRuntimeDevice(spec, 'runtime-device')
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
  return hostAtomics(group, runtime)
}
