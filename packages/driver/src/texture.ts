/** Arrays, textures, surfaces and tensor maps: the entries `@shoal/driver/texture` and `@shoal/runtime/texture`. */
export type {
  ArrayCopyOptions,
  ArrayNodeOptions,
  ArrayOrigin,
  ArrayRegion,
  ArrayToArrayOptions,
  TexelArray,
} from './work/texture/arrayCopy.js'
export type { ArrayDescription, ArrayOptions } from './work/texture/arrayDescription.js'
export type { ArrayFormat, ChannelCount, TexelFormat } from './work/texture/arrayFormat.js'
export { type ArrayMapping, mapArrays } from './work/texture/arrayMapping.js'
export {
  type ArrayMemoryRequirements,
  type ArraySource,
  type ArraySparseProperties,
  CudaArray,
} from './work/texture/cudaArray.js'
export { type ExternalArrayOptions, MipmappedArray, type MipmappedArrayOptions } from './work/texture/mipmappedArray.js'
export { SurfaceObject } from './work/texture/surfaceObject.js'
export { TensorMap } from './work/texture/tensorMap.js'
export type {
  Im2colOptions,
  Im2colWideOptions,
  TensorMapDType,
  TensorMapOptions,
  TiledOptions,
} from './work/texture/tensorMapOptions.js'
export { TextureObject } from './work/texture/textureObject.js'
export type {
  AddressMode,
  FilterMode,
  ReadMode,
  TextureDescription,
  TextureOptions,
} from './work/texture/textureOptions.js'
export type {
  LinearTexels,
  PitchedTexels,
  ResourceDescription,
  TextureResource,
} from './work/texture/textureResource.js'
export type { ResourceView, ViewDescription, ViewFormat } from './work/texture/textureView.js'
