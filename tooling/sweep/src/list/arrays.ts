import type { Spec } from '../spec.js'
import { zero } from './apiNames.js'
import { unwritten, withContext, withRuntimeDevice } from './start.js'
import { address, type GroupBuilder, handle, ignored, integer, member, none, out, presence, use } from './steps.js'

/** The description of a texture's or surface's array. */
function resourceOut(type: string): ReturnType<typeof out> {
  const fields = { '8:8': presence('a handle of this process'), '16:120': ignored('the rest of a union') }
  return out(type, { fields })
}

export function driverArrays(spec: Spec): GroupBuilder {
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
    .ask('cuTexObjectGetResourceDesc', resourceOut('CUDA_RESOURCE_DESC'), use('texture'))
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
    .ask('cuSurfObjectGetResourceDesc', resourceOut('CUDA_RESOURCE_DESC'), use('surface'))
    .setUp('cuSurfObjectDestroy', use('surface'))
    .setUp('cuTexObjectDestroy', use('texture'))
    .setUp('cuArrayDestroy', use('target'))
    .setUp('cuMipmappedArrayDestroy', use('levels'))
    .setUp('cuArrayDestroy', use('cube'))
    .setUp('cuArrayDestroy', use('flat'))
  return group
}

export function driverTextureReferences(spec: Spec): GroupBuilder {
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

export function runtimeArrays(spec: Spec): GroupBuilder {
  const group = withRuntimeDevice(spec, 'runtime-arrays')
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
    .ask('cudaGetTextureObjectResourceDesc', resourceOut('cudaResourceDesc'), use('texture'))
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
    .ask('cudaGetSurfaceObjectResourceDesc', resourceOut('cudaResourceDesc'), use('surface'))
    .setUp('cudaDestroySurfaceObject', use('surface'))
    .setUp('cudaFreeArray', use('target'))
    .setUp('cudaFreeArray', use('array'))
}
