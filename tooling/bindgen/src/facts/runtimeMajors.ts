/**
 * Functions for which older majors of libcudart export the same symbol with another signature, or with records of another
 * layout behind the same parameters: called with what the 13.0 headers say, they would misread arguments or write past
 * buffers. The value lists those majors; the form of 13.0 came with the major after the last one listed.
 *
 * Where it comes from: signatures and layouts of the headers of CUDA 11.2, 11.8, 12.4, 12.5 and 13.0, compared by machine
 * symbol by symbol (a macro in the headers of 11 and 12 that gives a name another symbol, such as
 * `cudaGetDeviceProperties_v2`, leaves the plain symbol with its old form), and, for what came after 12.5, cudarc's
 * generated bindings of 12.8 and 12.9. Records that only grew at their end, into what was reserved, or by members of a
 * union keep working in both directions and are not listed.
 */
export const otherMajors: Readonly<Record<string, number[]>> = {
  // location and flags instead of a device ordinal
  cudaMemPrefetchAsync: [11, 12],
  cudaMemAdvise: [11, 12],
  // edge data beside the dependencies
  cudaGraphAddDependencies: [11, 12],
  cudaGraphRemoveDependencies: [11, 12],
  cudaGraphGetEdges: [11, 12],
  cudaGraphNodeGetDependencies: [11, 12],
  cudaGraphNodeGetDependentNodes: [11, 12],
  cudaGraphAddNode: [12],
  cudaStreamGetCaptureInfo: [11, 12],
  cudaStreamUpdateCaptureDependencies: [11, 12],
  // flags instead of an error node and a log buffer
  cudaGraphInstantiate: [11],
  // one result record instead of an error node and a result
  cudaGraphExecUpdate: [11],
  // the status of the query as a fourth argument
  cudaGetDriverEntryPoint: [11],
  // the failing index is gone
  cudaMemcpyBatchAsync: [12],
  cudaMemcpy3DBatchAsync: [12],
  // cudaDeviceProp has other members at other offsets: 728 bytes in 11, 1032 in 12, 1008 in 13
  cudaGetDeviceProperties: [11, 12],
  cudaChooseDevice: [11, 12],
  // the plain symbols take the parameter records of 10.0, which are smaller
  cudaSignalExternalSemaphoresAsync: [11, 12],
  cudaWaitExternalSemaphoresAsync: [11, 12],
}

/** Version that brought the signature of 13.0 under the plain symbol. */
export function currentSignatureSince(majors: readonly number[]): number {
  return (Math.max(...majors) + 1) * 1000
}
