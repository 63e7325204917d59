/** Arrays, textures, surfaces and tensor maps: what `@shoal/driver/texture` and `@shoal/runtime/texture` offer. */
export type {
  ArrayCopyOptions,
  ArrayNodeOptions,
  ArrayOrigin,
  ArrayRegion,
  ArrayToArrayOptions,
  TexelArray,
} from './texture/arrayCopy.js'
export type { ArrayDescription, ArrayOptions } from './texture/arrayDescription.js'
export type { ArrayFormat, ChannelCount, TexelFormat } from './texture/arrayFormat.js'
export { type ArrayMapping, mapArrays } from './texture/arrayMapping.js'
export {
  type ArrayMemoryRequirements,
  type ArraySource,
  type ArraySparseProperties,
  CudaArray,
} from './texture/cudaArray.js'
export { type ExternalArrayOptions, MipmappedArray, type MipmappedArrayOptions } from './texture/mipmappedArray.js'
export { SurfaceObject } from './texture/surfaceObject.js'
export {
  type Im2colOptions,
  type Im2colWideOptions,
  TensorMap,
  type TensorMapDType,
  type TensorMapOptions,
  type TiledOptions,
} from './texture/tensorMap.js'
export { TextureObject } from './texture/textureObject.js'
export type {
  AddressMode,
  FilterMode,
  ReadMode,
  TextureDescription,
  TextureOptions,
} from './texture/textureOptions.js'
export type { LinearTexels, PitchedTexels, ResourceDescription, TextureResource } from './texture/textureResource.js'
export type { ResourceView, ViewDescription, ViewFormat } from './texture/textureView.js'
