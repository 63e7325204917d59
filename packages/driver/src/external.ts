/** Memory and semaphores of other libraries, such as Vulkan. */
export * from '@shoal/cuda-base/external'
