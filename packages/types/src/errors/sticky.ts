// CUDA documents that every call fails after these statuses. CUresult and cudaError_t use the same numbers.
const stickyStatuses: ReadonlySet<number> = new Set([
  226, // CONTAINED
  700, // ILLEGAL_ADDRESS
  702, // LAUNCH_TIMEOUT
  710, // ASSERT
  714, // HARDWARE_STACK_ERROR
  715, // ILLEGAL_INSTRUCTION
  716, // MISALIGNED_ADDRESS
  717, // INVALID_ADDRESS_SPACE
  718, // INVALID_PC
  719, // LAUNCH_FAILED
  721, // TENSOR_MEMORY_LEAK
  810, // MPS_CLIENT_TERMINATED
  911, // EXTERNAL_DEVICE
])

/** True for a `CUresult` or `cudaError_t` after which every later call on the context fails. */
export function isStickyCudaStatus(status: number): boolean {
  return stickyStatuses.has(status)
}
