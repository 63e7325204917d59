import { type Device, DeviceBuffer, type Kernel, Module, type Stream } from '@shoal/driver'
import { type Communicator, group } from '@shoal/nccl'
import { ptx } from './kernels.js'

const block = 256

/** One device's part of the model: weights, equal on all devices, its own targets, and room for gradients. */
export interface Replica {
  readonly device: Device
  readonly communicator: Communicator
  readonly stream: Stream
  readonly weights: DeviceBuffer<'f32'>
  readonly targets: DeviceBuffer<'f32'>
  readonly gradients: DeviceBuffer<'f32'>
  readonly module: Module
  readonly computeGradients: Kernel<readonly ['ptr', 'ptr', 'ptr', 'u32']>
  readonly descend: Kernel<readonly ['ptr', 'ptr', 'f32', 'u32']>
}

/** A replica on the device of a communicator, with weights of zero. */
export function makeReplica(device: Device, communicator: Communicator, targets: Float32Array): Replica {
  const module = Module.loadSync(device, ptx)
  return {
    device,
    communicator,
    stream: device.createStream({ nonBlocking: true }),
    weights: DeviceBuffer.zeros(device, 'f32', targets.length),
    targets: DeviceBuffer.from(device, targets),
    gradients: DeviceBuffer.zeros(device, 'f32', targets.length),
    module,
    computeGradients: module.kernel('gradients', ['ptr', 'ptr', 'ptr', 'u32']),
    descend: module.kernel('descend', ['ptr', 'ptr', 'f32', 'u32']),
  }
}

/** Queues one step on all devices: gradients on each, their sum over all, and a step down. */
export function queueStep(replicas: readonly Replica[], rate: number): void {
  for (const { computeGradients, weights, targets, gradients, stream } of replicas) {
    const { length } = weights
    computeGradients.launch({ grid: Math.ceil(length / block), block, stream }, weights, targets, gradients, length)
  }
  group(() => {
    for (const { communicator, gradients, stream } of replicas) {
      communicator.allReduce(gradients, gradients, { op: 'sum', stream })
    }
  })
  for (const { descend, weights, gradients, stream } of replicas) {
    const { length } = weights
    descend.launch({ grid: Math.ceil(length / block), block, stream }, weights, gradients, rate, length)
  }
}

/** Gives back what a replica has. */
export function disposeReplica({ stream, weights, targets, gradients, module }: Replica): void {
  for (const each of [stream, weights, targets, gradients, module]) each.dispose()
}
