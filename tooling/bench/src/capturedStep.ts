import { emptyKernels } from '@shoal/cli/bench'
import { nccl } from '@shoal/nccl-sys'
import { atMost, type Bar } from './bars.js'
import { compileWithCuda, writeTemporary } from './compile.js'
import { aboutDevices, devicesFor } from './devices.js'
import { startNodeSubjects } from './nodeSubjects.js'
import type { Outcome, RunOptions } from './options.js'
import { SubjectProcess } from './subjectProcess.js'
import { type Case, compiled, printRows, subjectIn, takeTurns } from './turns.js'

/** The number of kernels in a step. */
export const kernelCount = 20
/** The number of elements in its all-reduce. */
export const floats = 256 * 1024
const mostDevices = 2

/**
 * The host time to start a training step on two devices: kernels and an all-reduce, captured in a graph or queued call
 * by call.
 */
export async function benchCapturedStep(options: RunOptions): Promise<Outcome> {
  const devices = devicesFor(options).slice(0, options.devices ?? mostDevices)
  const ptxFile = writeTemporary('step.ptx', emptyKernels)
  const words = [nccl.load().path, ptxFile, String(devices.length), String(kernelCount), String(floats)]
  const [c] = await SubjectProcess.start('capturedStep.c', compileWithCuda('capturedStep.c'), words)
  const ours = await startNodeSubjects(new URL('capturedStepSubjects.js', import.meta.url), [devices.length])
  const what = `${kernelCount} kernels and an all-reduce on ${devices.length} ${devices.length === 1 ? 'device' : 'devices'}`
  const cases: Readonly<Record<string, Case>> = {
    launch: { title: `${what}, cuGraphLaunch`, unit: 'ns', count: 10, loops: 5 },
    queue: { title: 'the same, queued call by call', unit: 'ns', count: 10, loops: 5 },
  }
  const rows = await takeTurns(
    cases,
    [subjectIn(c, 'C', Object.keys(cases), (test, count) => `${test} ${count}`), ...ours.subjects],
    options.rounds,
    compiled,
  )
  c.close()
  ours.close()
  console.log('Time of the host for a step (median of rounds, each the best of 5 loops), and the ratio to C\n')
  printRows(rows, ['C', 'shoal'])
  const [launched, queued] = rows
  const ratio = launched?.ratioToC['shoal'] ?? Number.NaN
  const share = (launched?.subjects['shoal']?.median ?? Number.NaN) / (queued?.subjects['shoal']?.median ?? Number.NaN)
  const bars: Bar[] = [
    atMost('captured step, launch, ratio to C', ratio, 1.02),
    atMost('captured step, launch, share of the time of queuing it call by call', share, 0.5),
  ]
  return { results: { ...aboutDevices(devices, options), kernelCount, floats, cases: rows }, bars }
}
