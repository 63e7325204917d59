/**
 * libcudart functions whose signature, under the same name, is another one in other majors: facts the headers of one
 * version cannot tell. The value lists the majors that differ from the 13.0 signature.
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
  // the failing index is gone
  cudaMemcpyBatchAsync: [12],
  cudaMemcpy3DBatchAsync: [12],
  // the result record has other members and another size
  cudaGetDeviceProperties: [11, 12],
  // the parameter records have another size under this name
  cudaSignalExternalSemaphoresAsync: [11, 12],
  cudaWaitExternalSemaphoresAsync: [11, 12],
}
