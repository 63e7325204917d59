import {
  callsPerBurst,
  copyBytes,
  type DriverCalls,
  type Loop,
  makeDriverCalls,
  poolBytes,
  timeOfCall,
} from '@shoal/cli/bench'
import {
  type CUdeviceptr,
  type CUresult,
  cuCtxGetCurrent,
  cuEventRecord,
  cuLaunchKernel,
  cuMemAllocAsync,
  cuMemcpyDtoDAsync,
  cuMemFreeAsync,
  cuMemsetD8Async,
  cuStreamQuery,
} from '@shoal/cuda-sys/driver'
import { Device } from '@shoal/driver'
import { defineLibrary, type NativeLibrary, NativeMemory } from '@shoal/ffi'
import { putCString, putSize } from '@shoal/ffi/calls'
import { compileWithCuda } from './compile.js'
import { type Subject, subjectOf } from './turns.js'

/** The subjects for `startNodeSubjects`. */
export function makeSubjects([ptxFile = '-']: readonly string[]): readonly Subject[] {
  const device = Device.get(0)
  const calls = makeDriverCalls(device)
  // The context is current on the thread, as in the C program.
  const inside = (loop: Loop, bursts: number): number =>
    device.primaryContext.run(() => timeOfCall(calls.stream, loop, bursts))
  return [
    loopsInC(ptxFile),
    subjectOf('raw', rawLoops(calls), inside),
    subjectOf('driver', calls.loops, inside),
    subjectOf('prepared', calls.prepared, inside),
    // No context is current on the thread. Each call makes its objects' context current and restores the previous one.
    subjectOf('switching', calls.loops, (loop, bursts) => timeOfCall(calls.stream, loop, bursts)),
  ]
}

/**
 * The loops of the C program in this process. They separate the influence of the process from the cost of the way into
 * C.
 */
function loopsInC(ptxFile: string): Subject {
  const library = driverWithLoops()
  const start = library.bind('calls_start', 0, 1)
  putCString(0, ptxFile, 'calls_start', 'ptxFile')
  start()
  const measure = library.bind('calls_measure', 0, 3, 'f64')
  const tests = [
    'copy',
    'fill',
    'record',
    'query',
    'pool',
    'current',
    ...(ptxFile === '-' ? [] : ['launch0', 'launch4']),
  ]
  return {
    name: 'C in Node',
    cases: tests,
    measure: (test, bursts) => {
      putCString(0, test, 'calls_measure', 'name')
      putSize(1, bursts, 'calls_measure', 'bursts')
      putSize(2, callsPerBurst, 'calls_measure', 'calls')
      return measure()
    },
  }
}

function driverWithLoops(): NativeLibrary {
  const library = defineLibrary({
    id: 'calls',
    title: 'the loops of the benchmark',
    environment: 'SHOAL_BENCH_CALLS_LIBRARY',
    linux: ['calls'],
    hint: 'it is built when the benchmark starts',
  })
  library.setPath(compileWithCuda('calls.c', ['-shared', '-fPIC']))
  return library
}

function must(status: CUresult): void {
  if (status !== 0) throw new Error(`a call of the CUDA driver failed with ${status}`)
}

/** The loops of `makeDriverCalls` through the raw package, with the same objects. */
function rawLoops({ stream: { handle: stream }, event: { handle: event }, from, to, kernels }: DriverCalls) {
  const [source, target] = [from.address as CUdeviceptr, to.address as CUdeviceptr]
  const allocated = NativeMemory.allocate(8)
  const current = NativeMemory.allocate(8)
  const loops: Record<string, Loop> = {
    copy: (count) => {
      for (let i = 0; i < count; i += 1) must(cuMemcpyDtoDAsync(target, source, copyBytes, stream))
    },
    fill: (count) => {
      for (let i = 0; i < count; i += 1) must(cuMemsetD8Async(target, 0, copyBytes, stream))
    },
    record: (count) => {
      for (let i = 0; i < count; i += 1) must(cuEventRecord(event, stream))
    },
    query: (count) => {
      for (let i = 0; i < count; i += 1) must(cuStreamQuery(stream))
    },
    pool: (count) => {
      for (let i = 0; i < count; i += 1) {
        must(cuMemAllocAsync(allocated, poolBytes, stream))
        must(cuMemFreeAsync(allocated.u64[0] as CUdeviceptr, stream))
      }
    },
    current: (count) => {
      for (let i = 0; i < count; i += 1) must(cuCtxGetCurrent(current))
    },
  }
  if (kernels === undefined) return loops
  const [f0, f4] = [kernels.empty0.handle, kernels.empty4.handle]
  // Four values of 8 bytes each, and their four addresses, which C calls kernelParams.
  const block = NativeMemory.allocate(64)
  block.f32[0] = 2
  block.u64[1] = source
  block.u64[2] = target
  block.i32[6] = copyBytes / 4
  for (let i = 0; i < 4; i += 1) block.u64[4 + i] = block.address + BigInt(8 * i)
  const parameters = block.address + 32n
  loops['launch0'] = (count) => {
    for (let i = 0; i < count; i += 1) must(cuLaunchKernel(f0, 1, 1, 1, 32, 1, 1, 0, stream, null, null))
  }
  loops['launch4'] = (count) => {
    for (let i = 0; i < count; i += 1) must(cuLaunchKernel(f4, 1, 1, 1, 32, 1, 1, 0, stream, parameters, null))
    // Keeps the values alive until the last launch has read them.
    if (block.address === 0n) throw new Error('unreachable')
  }
  return loops
}
