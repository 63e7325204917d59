import { type Device, DeviceBuffer, type Event, type Kernel, Module, type Stream } from '@shoal/driver'
import type { Loop } from './timing.js'

/** Calls per burst: few enough for the launch queue of a GPU, so that no call waits for space in it. */
export const callsPerBurst = 200
export const copyBytes = 1024
export const poolBytes = 4096

/** Kernels without code. */
export const emptyKernels = `.version 6.4
.target sm_52
.address_size 64
.visible .entry empty0() { ret; }
.visible .entry empty4(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n) { ret; }
`

/** Loops over driver calls that only queue work, with their objects. */
export interface DriverCalls {
  readonly stream: Stream
  readonly event: Event
  readonly from: DeviceBuffer<'f32'>
  readonly to: DeviceBuffer<'f32'>
  /** Undefined on the software device, whose launch times say nothing about a GPU. */
  readonly kernels:
    | { readonly empty0: Kernel<readonly []>; readonly empty4: Kernel<readonly ['f32', 'ptr', 'ptr', 'i32']> }
    | undefined
  readonly loops: Readonly<Record<string, Loop>>
  /** Loops over prepared launches, whose arguments are checked once. */
  readonly prepared: Readonly<Record<string, Loop>>
  dispose(): void
}

/** Makes the stream, event, buffers and kernels, and loops as simple as in C. */
export function makeDriverCalls(device: Device): DriverCalls {
  const stream = device.createStream({ nonBlocking: true })
  const event = device.createEvent()
  const [from, to] = [
    DeviceBuffer.zeros(device, 'f32', copyBytes / 4),
    DeviceBuffer.zeros(device, 'f32', copyBytes / 4),
  ]
  const options = { stream }
  const module = device.isSoftware ? undefined : Module.loadSync(device, emptyKernels)
  const kernels = module && {
    empty0: module.kernel('empty0', []),
    empty4: module.kernel('empty4', ['f32', 'ptr', 'ptr', 'i32']),
  }
  const loops: Record<string, Loop> = {
    query: (count) => {
      for (let i = 0; i < count; i += 1) stream.query()
    },
    record: (count) => {
      for (let i = 0; i < count; i += 1) stream.record(event)
    },
    copy: (count) => {
      for (let i = 0; i < count; i += 1) to.copyFrom(from, options)
    },
    fill: (count) => {
      for (let i = 0; i < count; i += 1) to.fill(0, options)
    },
    pool: (count) => {
      for (let i = 0; i < count; i += 1) DeviceBuffer.allocateOn(stream, 'u8', poolBytes).disposeOn(stream)
    },
  }
  const dispose = (): void => {
    for (const object of [module, from, to, event, stream]) object?.dispose()
  }
  const calls = { stream, event, from, to, kernels, dispose }
  if (kernels === undefined) return { ...calls, loops, prepared: {} }
  const { empty0, empty4 } = kernels
  const config = { grid: 1, block: 32, stream }
  const [plan0, plan4] = [empty0.prepare(config), empty4.prepare(config, 2, from, to, copyBytes / 4)]
  loops['launch0'] = (count) => {
    for (let i = 0; i < count; i += 1) empty0.launch(config)
  }
  loops['launch4'] = (count) => {
    for (let i = 0; i < count; i += 1) empty4.launch(config, 2, from, to, copyBytes / 4)
  }
  const prepared: Record<string, Loop> = {
    launch0: (count) => {
      for (let i = 0; i < count; i += 1) plan0.launch()
    },
    launch4: (count) => {
      for (let i = 0; i < count; i += 1) plan4.launch()
    },
  }
  return { ...calls, loops, prepared }
}

/** Returns nanoseconds per call over `bursts` bursts, without the wait for the stream after each. */
export function timeOfCall(stream: Stream, loop: Loop, bursts: number): number {
  let nanoseconds = 0n
  for (let i = 0; i < bursts; i += 1) {
    const start = process.hrtime.bigint()
    loop(callsPerBurst)
    nanoseconds += process.hrtime.bigint() - start
    stream.synchronizeSync()
  }
  return Number(nanoseconds) / (bursts * callsPerBurst)
}
