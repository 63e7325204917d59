import { CUDA_KERNEL_NODE_PARAMS_v3, CUgraphNodeParams } from '@shoal/cuda-sys/driver'
import type { NodeParameters } from '@shoal/driver/graph'
import { describe, expect, test } from 'vitest'
import { add, device, firstOf, one, second, stream, zeros } from './support/graphObjects.js'

const { DeviceBuffer } = await import('@shoal/driver')
const { copyNode, emptyNode, fillNode, Graph, hostNode, kernelNode, kernelOffsets, nodeParameters } = await import(
  '@shoal/driver/graph'
)

describe('node descriptions', () => {
  test('of copies, fills, kernels and functions run in the order of their edges', async () => {
    using from = DeviceBuffer.from(device, Uint32Array.of(1, 2, 3))
    using to = zeros(3)
    using graph = Graph.create(device)
    let calls = 0
    const clear = graph.add(fillNode(to, 9))
    const copy = graph.add(copyNode(to, from), { dependencies: [clear] })
    const run = graph.add(kernelNode(add, one, to, 10), { dependencies: [copy] })
    const join = graph.add(emptyNode(), { dependencies: [clear, run] })
    const call = graph.add(
      hostNode(() => {
        calls += 1
      }),
      { dependencies: [join] },
    )
    expect(graph.nodes).toEqual([clear, copy, run, join, call])
    expect(graph.toJSON()).toEqual({
      nodes: ['memset', 'memcpy', 'kernel', 'empty', 'host'].map((type, id) => ({ id, type })),
      edges: [
        [0, 1],
        [1, 2],
        [0, 3],
        [2, 3],
        [3, 4],
      ].map(([start, end]) => ({ from: start, to: end, fromPort: 0, type: 'default' })),
    })
    using step = graph.instantiate()
    step.launch(stream)
    step.launch(stream)
    await stream.synchronize()
    await stream.hostFunction(() => {})
    expect([...to.toArraySync(), calls]).toEqual([11, 2, 3, 2])
  })

  test('keep the arguments of a kernel, even if reading an argument adds other nodes', async () => {
    using sum = zeros()
    using aside = zeros()
    using graph = Graph.create(device)
    const memoryProtocol = Symbol.for('cuda.memory')
    let added = 0
    let isAdding = false
    const memory = {
      get [memoryProtocol]() {
        if (!isAdding) {
          isAdding = true
          graph.add(kernelNode(add, one, aside, 100))
          graph.add(emptyNode())
          added += 1
          isAdding = false
        }
        return (sum as never as { [memoryProtocol]: object })[memoryProtocol]
      },
    }
    graph.add(kernelNode(add, { grid: 3, block: 1 }, memory as never, 1))
    using step = graph.instantiate()
    const instantiated = added
    step.launch(stream)
    await stream.synchronize()
    expect(instantiated).toBeGreaterThan(1)
    expect([firstOf(sum), firstOf(aside)]).toEqual([3, instantiated * 100])
  })

  test('of consecutive kernels keep the sizes of each kernel', () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const sizes = [
      { grid: 3, block: 1 },
      { grid: 3, block: 1 },
      { grid: 2, block: 1 },
      { grid: 2, block: 4 },
      { grid: [2, 5], block: [4, 1, 2] },
      { grid: 2, block: 4, sharedMemory: 64 },
      { grid: 2, block: 4 },
      { grid: 2, block: 4, sharedMemory: undefined },
    ] as const
    // All nodes are described before the first is added.
    const described = sizes.map((config) => kernelNode(add, config, sum, 1))
    for (const description of described) graph.add(description)
    const three = (size: number | readonly number[]): number[] => [...[size].flat(), 1, 1].slice(0, 3)
    expect(
      graph.nodes.map((node) => {
        const { grid, block, sharedMemory } = nodeParameters(node) as Extract<NodeParameters, { type: 'kernel' }>
        return { grid, block, sharedMemory }
      }),
    ).toEqual(
      sizes.map(({ grid, block, ...rest }) => ({
        grid: three(grid),
        block: three(block),
        sharedMemory: ('sharedMemory' in rest ? rest.sharedMemory : undefined) ?? 0,
      })),
    )
  })

  test('refuse the same errors for a kernel with cached sizes as for its first use', () => {
    using sum = zeros()
    kernelNode(add, one, sum, 1)
    const wrong: readonly [unknown, string][] = [
      [
        { ...one, streams: stream },
        "kernelNode: config must have only the keys grid, block, sharedMemory, stream, not 'streams'",
      ],
      [{ ...one, stream }, 'kernelNode: stream must be left out'],
      [Object.assign(Object.create({ stream }), one), 'kernelNode: config must be a plain object'],
      [undefined, 'kernelNode: config must be a plain object'],
    ]
    for (const [config, message] of wrong) expect(() => kernelNode(add, config as never, sum, 1)).toThrow(message)
    const { proxy, revoke } = Proxy.revocable({ ...one }, {})
    revoke()
    expect(() => kernelNode(add, proxy, sum, 1)).toThrow('kernelNode: config must be a plain object')
    expect(() => kernelNode(add, one, ...([sum] as never as [typeof sum, number]))).toThrow('kernelNode: args must be')
    expect(() => kernelNode({ _checkNode() {} } as never, one)).toThrow('kernelNode: kernel must be a Kernel')
  })

  test('work between devices', async () => {
    using from = DeviceBuffer.from(device, Uint32Array.of(4, 5))
    using far = DeviceBuffer.zeros(second, 'u32', 2)
    device.primaryContext.enablePeerAccess(second)
    using graph = Graph.create(device)
    const copy = graph.add(copyNode(far, from))
    graph.add(fillNode(far.slice(0, 1), 7), { dependencies: [copy] })
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect([...far.toArraySync()]).toEqual([7, 5])
    device.primaryContext.disablePeerAccess(second)
  })

  test('accept fills of every width that one pattern can express', async () => {
    const cases = [
      ['u8', 200],
      ['i16', -2],
      ['f32', 1.5],
      ['f64', 0],
      ['u64', 0x0000_0001_0000_0001n],
    ] as const
    for (const [dtype, value] of cases) {
      using buffer = DeviceBuffer.allocate(device, dtype, 5)
      using graph = Graph.create(device)
      graph.add(fillNode(buffer as never, value as never))
      using step = graph.instantiate()
      step.launch(stream)
      await stream.synchronize()
      expect([...(buffer.toArraySync() as ArrayLike<unknown> & Iterable<unknown>)].map(Number)).toEqual(
        new Array(5).fill(Number(value)),
      )
    }
    using wide = DeviceBuffer.allocate(device, 'f64', 2)
    expect(() => fillNode(wide, 1.1)).toThrow('fillNode: value must be one whose 32-bit parts are alike')
  })
})

test('kernel node parameters have the layout of C', () => {
  const [params, kernel] = [CUgraphNodeParams.offsets, CUDA_KERNEL_NODE_PARAMS_v3.offsets]
  expect(kernelOffsets).toEqual({
    func: params.kernel + kernel.func,
    gridDim: params.kernel + kernel.gridDimX,
    blockDim: params.kernel + kernel.blockDimX,
    sharedMemBytes: params.kernel + kernel.sharedMemBytes,
    kernelParams: params.kernel + kernel.kernelParams,
  })
})

test('copy and fill node parameters have the layout of C, with sizes above 32 bits intact', () => {
  const byteLength = 5 * 2 ** 30 + 4
  const of = (address: bigint) => DeviceBuffer.fromAddress(device, address, 'u32', byteLength / 4)
  const [from, to] = [of(0x7f00_0000_0000n), of(0x7e00_0000_0000n)]
  const { primaryContext } = device
  const written = (description: unknown) =>
    CUgraphNodeParams.read(
      (description as { _write(context: object, api: string): { parameters: Uint8Array } })._write(
        primaryContext,
        'test',
      ).parameters,
    )
  for (const _ of [1, 2]) {
    expect(written(fillNode(to, 0x01020304))).toMatchObject({
      type: 2,
      memset: {
        dst: to.address,
        pitch: 0n,
        value: 0x01020304,
        elementSize: 4,
        width: BigInt(byteLength / 4),
        height: 1n,
        ctx: primaryContext.handle,
      },
    })
    expect(written(fillNode(to, 0x01010101)).memset).toMatchObject({ elementSize: 1, width: BigInt(byteLength) })
    const { type, memcpy } = written(copyNode(to, from))
    expect([type, memcpy.flags, memcpy.copyCtx]).toEqual([1, 0, primaryContext.handle])
    expect(memcpy.copyParams).toEqual({
      ...CUgraphNodeParams.read(new Uint8Array(CUgraphNodeParams.size)).memcpy.copyParams,
      srcMemoryType: 4,
      srcDevice: from.address,
      dstMemoryType: 4,
      dstDevice: to.address,
      WidthInBytes: BigInt(byteLength),
      Height: 1n,
      Depth: 1n,
    })
  }
})
