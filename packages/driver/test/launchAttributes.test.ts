import { CUDA_KERNEL_NODE_PARAMS, CUlaunchAttribute, CUlaunchConfig } from '@shoal/cuda-sys/driver'
import { DisposedError } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { Device, DeviceBuffer, Event, Module } = await import('@shoal/driver')
const { Graph, kernelNode } = await import('@shoal/driver/graph')

/** Each block writes its position in its cluster, and the cluster's number of blocks. */
const code = `
.version 8.5
.target sm_90
.address_size 64
.visible .entry place(.param .u64 out) {
  .reg .b64 %rd<4>; .reg .b32 %r<5>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 8;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, %cluster_nctarank;
  st.global.u32 [%rd3], %r2;
  st.global.u32 [%rd3+4], %r3;
  ret;
}
`

const device = Device.get(0)
const module = Module.loadSync(device, code)
const place = module.kernel('place', ['ptr'])
let stream: import('@shoal/driver').Stream
beforeAll(() => {
  stream = device.createStream({ nonBlocking: true })
})
afterAll(() => {
  stream.dispose()
  module.dispose()
})

const blocks = 8
const config = () => ({ grid: blocks, block: 32, stream })

async function placesOf(launch: (out: import('@shoal/driver').DeviceBuffer<'u32'>) => void): Promise<number[]> {
  using out = DeviceBuffer.zeros(device, 'u32', blocks * 2)
  launch(out)
  await stream.synchronize()
  return [...(await out.toArray())]
}

const inClustersOf = (size: number) => Array.from({ length: blocks }, (_, block) => [block % size, size]).flat()

describe('kernel.with', () => {
  test('clusterDimension: launches in clusters, also prepared and as a node', async () => {
    const clustered = place.with({ clusterDimension: 4 })
    expect(await placesOf((out) => place.launch(config(), out))).toEqual(inClustersOf(1))
    expect(await placesOf((out) => clustered.launch(config(), out))).toEqual(inClustersOf(4))
    expect(await placesOf((out) => clustered.prepare(config(), out).launch())).toEqual(inClustersOf(4))
    expect(await placesOf((out) => place.with({ clusterDimension: [2, 1] }).launch(config(), out))).toEqual(
      inClustersOf(2),
    )
    const asNode = await placesOf((out) => {
      using graph = Graph.create(device)
      const node = graph.add(kernelNode(clustered, { grid: blocks, block: 32 }, out))
      using exec = graph.instantiate()
      exec.launch(stream)
      stream.synchronizeSync()
      node.update(kernelNode(place.with({ clusterDimension: 8 }), { grid: blocks, block: 32 }, out))
      expect(exec.update(graph).result).toBe('success')
      exec.launch(stream)
      stream.synchronizeSync()
    })
    expect(asNode).toEqual(inClustersOf(8))
    // The driver receives the sizes unchanged.
    expect(() => place.with({ clusterDimension: 3 }).launch(config(), null)).toThrow(
      expect.objectContaining({ code: 'CUDA_ERROR_INVALID_CLUSTER_SIZE', api: 'cuLaunchKernelEx' }),
    )
  })

  test('returns a second kernel with only these attributes', async () => {
    const clustered = place.with({ clusterDimension: 4 })
    expect([clustered.name, clustered.handle, clustered.signature]).toEqual([place.name, place.handle, place.signature])
    expect(await placesOf((out) => clustered.with({ priority: 0 }).launch(config(), out))).toEqual(inClustersOf(1))
  })

  test('accepts every attribute of CUDA', async () => {
    using event = Event.create(device)
    using memory = DeviceBuffer.zeros(device, 'u8', 64)
    const all = place.with({
      accessPolicyWindow: { memory, hitRatio: 0.5, hit: 'persisting', miss: 'streaming' },
      cooperative: true,
      clusterDimension: 2,
      clusterSchedulingPolicy: 'spread',
      programmaticStreamSerialization: true,
      programmaticEvent: { event, triggerAtBlockStart: true },
      priority: -1,
      memorySynchronizationDomainMap: { default: 0, remote: 1 },
      memorySynchronizationDomain: 'remote',
      preferredClusterDimension: [4, 1, 1],
      launchCompletionEvent: event,
      sharedMemoryCarveout: 50,
      nvlinkUtilCentricScheduling: false,
      raw: [{ id: 0, value: Uint8Array.of(1, 2, 3) }],
    })
    expect(await placesOf((out) => all.launch(config(), out))).toEqual(inClustersOf(2))
    event.dispose()
    expect(() => all.launch(config(), null)).toThrow(DisposedError)
  })

  test('refuses wrong attributes by name', () => {
    const wrong = [
      [{ clusterDimension: 0 }, 'clusterDimension'],
      [{ clusterDimension: [1, 2, 3, 4] }, 'clusterDimension'],
      [{ clusterDimension: 1.5 }, 'clusterDimension'],
      [{ cooperative: 1 }, 'cooperative'],
      [{ priority: Number.NaN }, 'priority'],
      [{ synchronizationPolicy: 'spin' }, 'synchronizationPolicy'],
      [{ sharedMemoryCarveout: 101 }, 'sharedMemoryCarveout'],
      [{ programmaticEvent: { event: 1 } }, 'programmaticEvent.event'],
      [{ launchCompletionEvent: stream }, 'launchCompletionEvent'],
      [{ accessPolicyWindow: { memory: 1, hitRatio: 1, hit: 'normal', miss: 'normal' } }, 'accessPolicyWindow.memory'],
      [{ raw: [{ id: 1, value: new Uint8Array(65) }] }, 'raw[0].value'],
      [{ raw: 7 }, 'raw'],
      [{ cluster: 2 }, 'cluster'],
      [null, 'attributes'],
    ] as const
    for (const [attributes, name] of wrong) {
      expect(() => place.with(attributes as never), name).toThrow(
        new RegExp(`^Kernel.with: .*${name.replace(/[[\].]/g, '\\$&')}`),
      )
    }
  })
})

describe('clusters of a kernel', () => {
  test('report the largest cluster size and how many clusters run at once', () => {
    const clustered = place.with({ clusterDimension: 2 })
    expect(clustered.maxActiveClusters({ grid: 8, block: 128 })).toBeGreaterThan(0)
    expect(place.potentialClusterSize({ grid: 8, block: 128 })).toBeGreaterThanOrEqual(8)
    expect(() => place.potentialClusterSize({ grid: 8, block: 4096 })).toThrow('Kernel.potentialClusterSize: block')
  })
})

test('launch attribute structures have the layout of C', () => {
  expect(CUlaunchAttribute.size).toBe(72)
  expect(CUlaunchAttribute.offsets).toMatchObject({ id: 0, value: 8 })
  expect(CUlaunchConfig.size).toBe(56)
  expect(CUlaunchConfig.offsets).toMatchObject({
    gridDimX: 0,
    sharedMemBytes: 24,
    hStream: 32,
    attrs: 40,
    numAttrs: 48,
  })
  expect(CUDA_KERNEL_NODE_PARAMS.size).toBe(72)
})
