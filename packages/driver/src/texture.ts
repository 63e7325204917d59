/** Arrays, textures, surfaces and tensor maps of the driver. */
export * from '@shoal/cuda-base/texture'
