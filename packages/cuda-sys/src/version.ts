/** A version as CUDA counts them, for people: 12080 is `12.8`. */
export function formatCudaVersion(version: number): string {
  return `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`
}
