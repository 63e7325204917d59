import type { Comparison } from './data.js'

/** What one device did. */
export interface DeviceReport {
  readonly rank: number
  readonly ordinal: number
  readonly name: string
  readonly software: boolean
  readonly comparison: Comparison
}

export interface RunReport {
  readonly processes: number
  readonly elements: number
  readonly iterations: number
  readonly seed: number
  /** One all-reduce, the slowest rank's, in seconds. */
  readonly seconds: number
  readonly ncclVersion: string
  readonly devices: readonly DeviceReport[]
}

/** Prints the work and its speed. Returns whether all elements are correct. */
export function printReport(report: RunReport): boolean {
  const { devices, elements, seconds } = report
  const ranks = devices.length
  const bytes = elements * 4
  // As nccl-tests count: what an all-reduce has to move over the links for each byte of its result.
  const algorithmBandwidth = bytes / seconds / 1e9
  const busBandwidth = (algorithmBandwidth * 2 * (ranks - 1)) / ranks
  const processes = report.processes === 1 ? 'one process' : `${report.processes} processes`
  console.log(
    `All-reduce (sum) over ${ranks} ${ranks === 1 ? 'device' : 'devices'} in ${processes}, NCCL ${report.ncclVersion}`,
  )
  for (const { rank, ordinal, name, software } of devices) {
    console.log(`  rank ${rank}: device ${ordinal}, ${name}${software ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'}`)
  }
  console.log(`  data: ${elements} f32 on each device, ${bytes} bytes, seed ${report.seed}`)
  console.log(`  time: ${(seconds * 1e3).toFixed(3)} ms, mean of ${report.iterations}`)
  console.log(`  algorithm bandwidth: ${algorithmBandwidth.toFixed(2)} GB/s`)
  console.log(`  bus bandwidth: ${busBandwidth.toFixed(2)} GB/s`)
  const checked = devices.reduce((sum, one) => sum + one.comparison.checked, 0)
  const mismatches = devices.reduce((sum, one) => sum + one.comparison.mismatches, 0)
  if (mismatches === 0 && checked === ranks * elements) {
    console.log(`  checked: all ${checked} elements are right, as far as sums of f32 can be`)
    return true
  }
  console.error(`MISMATCH: ${mismatches} of ${checked} elements are wrong`)
  for (const { rank, comparison } of devices) {
    for (const example of comparison.examples) console.error(`  rank ${rank}: ${example}`)
  }
  return false
}
