// Statuses after which CUDA documents that every further call fails: the same numbers in CUresult and cudaError_t.
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

/** Whether a `CUresult` or `cudaError_t` means that the context is lost and every later call on it fails. */
export function isStickyCudaStatus(status: number): boolean {
  return stickyStatuses.has(status)
}
