import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { type Told, told } from './support/told.js'

const { Device, Event, ManagedBuffer, Module, PinnedBuffer, RegisteredBuffer, Stream } = await import('@shoal/driver')
const { Graph } = await import('@shoal/driver/graph')
const { CreatedContext, DeviceResource } = await import('@shoal/driver/context')
const { Library, Linker } = await import('@shoal/driver/library')

const ptx = '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n'
const device = Device.get(0)
const stream = device.createStream()
const module = Module.loadSync(device, ptx)
const kernel = module.kernel('nothing', [])
const event = Event.create(device)
const managed = ManagedBuffer.allocate(device, 'u8', 100)
const graph = Graph.create(device)

afterAll(() => {
  for (const each of [stream, module, event, managed, graph]) each.dispose()
  device.dispose()
})

test('cuLinkAddData receives the size of each image, which for PTX includes the final NUL', () => {
  const sizeOf = (image: string | Uint8Array, kind?: 'library'): number =>
    told('cuLinkAddData', () => {
      const linker = Linker.create(device)
      try {
        linker.add(image, kind === undefined ? {} : { kind })
      } finally {
        linker.dispose()
      }
    }).size(3)
  expect(sizeOf(ptx)).toBe(ptx.length + 1)
  expect(sizeOf(new TextEncoder().encode(ptx))).toBe(ptx.length + 1)
  const archive = new TextEncoder().encode('!<arch>\n')
  expect(sizeOf(archive, 'library')).toBe(archive.length)
})

type Flags = readonly [options: object, told: number]

/** A function, a call of it with options, and the position and value of the flags that C receives. */
const flags: readonly (readonly [string, (options: never) => unknown, number, readonly Flags[]])[] = [
  [
    'cuEventCreate',
    (options) => Event.create(device, options),
    1,
    [
      [{}, 2],
      [{ timing: false, blocking: false, interprocess: false }, 2],
      [{ timing: true }, 0],
      [{ blocking: true }, 3],
      [{ interprocess: true }, 6],
      [{ timing: true, blocking: true }, 1],
    ],
  ],
  [
    'cuStreamCreateWithPriority',
    (options) => Stream.create(device, options),
    1,
    [
      [{}, 0],
      [{ nonBlocking: false }, 0],
      [{ nonBlocking: true }, 1],
    ],
  ],
  [
    'cuStreamCreateWithPriority',
    (options) => Stream.create(device, options),
    2,
    [
      [{}, 0],
      [{ priority: 0 }, 0],
      [{ priority: device.streamPriorityRange.greatest }, device.streamPriorityRange.greatest],
    ],
  ],
  [
    'cuMemHostAlloc',
    (options) => PinnedBuffer.allocate(device, 'u8', 100, options),
    2,
    [
      [{}, 1],
      [{ portable: true, mapped: false, writeCombined: false }, 1],
      [{ portable: false }, 0],
      [{ mapped: true }, 3],
      [{ writeCombined: true }, 5],
    ],
  ],
  [
    'cuMemHostRegister',
    (options) => RegisteredBuffer.register(device, new ArrayBuffer(8192), options),
    2,
    [
      [{}, 1],
      [{ portable: true, mapped: false, readOnly: false }, 1],
      [{ portable: false }, 0],
      [{ mapped: true }, 3],
      [{ readOnly: true }, 9],
    ],
  ],
  [
    'cuMemAllocManaged',
    (options) => ManagedBuffer.allocate(device, 'u8', 100, options),
    2,
    [
      [{}, 1],
      [{ attach: 'global' }, 1],
      [{ attach: 'host' }, 2],
    ],
  ],
  [
    'cuStreamAttachMemAsync',
    ({ to }: { to?: 'single' }) => void managed.attachTo(stream, to),
    3,
    [
      [{}, 4],
      [{ to: 'single' }, 4],
      [{ to: 'global' }, 1],
      [{ to: 'host' }, 2],
    ],
  ],
  [
    'cuGraphDebugDotPrint',
    (options) => graph.writeDot(join(scratchFolder(), 'told.dot'), options),
    2,
    [
      [{}, 0],
      [{ verbose: false }, 0],
      [{ verbose: true }, 1],
    ],
  ],
  [
    'cuDevicePrimaryCtxSetFlags',
    (options) => device.setPrimaryContextFlags(options),
    1,
    [
      [{}, 0],
      [{ scheduling: 'auto' }, 0],
      [{ scheduling: 'spin' }, 1],
      [{ scheduling: 'yield' }, 2],
      [{ scheduling: 'blocking', keepLocalMemory: true }, 0x14],
      [{ mapHost: true, scheduling: 'spin' }, 0x01],
      [{ coredump: true }, 0x20],
      [{ userCoredump: true }, 0x40],
      [{ synchronousMemory: true }, 0x80],
      [{ mapHost: false, keepLocalMemory: false, coredump: false, userCoredump: false, synchronousMemory: false }, 0],
    ],
  ],
  [
    'cuCtxCreate',
    (options) => CreatedContext.create(device, options),
    2,
    [
      [{}, 0],
      [{ scheduling: 'spin', mapHost: true }, 9],
    ],
  ],
  [
    'cuFuncSetCacheConfig',
    ({ as }: { as: 'none' }) => kernel.setCacheConfig(as),
    1,
    [
      [{ as: 'none' }, 0],
      [{ as: 'shared' }, 1],
      [{ as: 'cache' }, 2],
      [{ as: 'equal' }, 3],
    ],
  ],
  [
    'cuCtxSetCacheConfig',
    ({ as }: { as: 'none' }) => Object.assign(device, { cacheConfig: as }) && undefined,
    0,
    [
      [{ as: 'none' }, 0],
      [{ as: 'shared' }, 1],
      [{ as: 'l1' }, 2],
      [{ as: 'equal' }, 3],
    ],
  ],
  [
    'cuDevSmResourceSplitByCount',
    (options) => void DeviceResource.of(device).split(2, options),
    4,
    [
      [{}, 0],
      [{ groups: 1 }, 0],
      [{ groups: 1, ignoreCoscheduling: true }, 1],
      [{ groups: 1, maxPotentialClusterSize: true }, 2],
    ],
  ],
  [
    'cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags',
    (options) => void kernel.maxActiveBlocks(32, options),
    4,
    [
      [{}, 0],
      [{ disableCachingOverride: false }, 0],
      [{ disableCachingOverride: true }, 1],
    ],
  ],
  ['cuEventRecordWithFlags', (options) => void stream.record(event, options), 2, [[{ external: true }, 1]]],
  [
    'cuStreamWaitEvent',
    (options) => void stream.waitEvent(event, options),
    2,
    [
      [{}, 0],
      [{ external: false }, 0],
      [{ external: true }, 1],
    ],
  ],
]

describe.each(flags)('%s', (api, act, index, rows) => {
  test.each(rows)('%o', (options, code) => {
    expect(told(api, () => act(options as never)).int(index)).toBe(code)
  })
})

test('compiler options are passed with their numbers and values in C, also if disabled', () => {
  const numbers = {
    maxRegisters: [0, 33],
    optimizationLevel: [7, 2],
    minBlocksPerMultiprocessor: [31, 3],
    maxThreadsPerBlock: [32, 128],
    debugInfo: [11, true],
    verbose: [12, true],
    lineInfo: [13, true],
    positionIndependentCode: [30, true],
    overrideDirectives: [33, true],
  } as const
  const optionsOf = (given: Told): Map<number, number> => {
    const count = given.int(2)
    return new Map(given.ints(3, count).map((code, at) => [code, given.sizes(4, count)[at] as number]))
  }
  const load = (options: object) => optionsOf(told('cuModuleLoadDataEx', () => Module.loadSync(device, ptx, options)))
  const plain = load({})
  for (const [name, [code, value]] of Object.entries(numbers)) {
    const given = load({ [name]: value })
    expect([name, given.get(code), given.size]).toEqual([name, Number(value), plain.size + 1])
    if (value === true) expect([name, load({ [name]: false }).get(code) ?? 0]).toEqual([name, 0])
  }
  for (const [mode, value] of Object.entries({ none: 0, cg: 1, ca: 2 })) {
    const given = load({ cacheMode: mode })
    expect([mode, given.get(14)]).toEqual([mode, value])
  }
})

test('cuLibraryLoadData receives whether to keep the image', () => {
  for (const [options, count] of [
    [{}, 0],
    [{ preserveImage: false }, 0],
    [{ preserveImage: true }, 1],
  ] as const) {
    const given = told('cuLibraryLoadData', () => Library.loadSync(device, ptx, options))
    expect(given.int(7)).toBe(count)
    if (count === 1) expect([given.ints(5, 1), given.sizes(6, 1)]).toEqual([[1], [1]])
  }
})

test('graph instantiation passes exactly the requested flags', () => {
  for (const [options, bits] of [
    [{}, 0],
    [{ autoFreeOnLaunch: true }, 1],
    [{ deviceLaunch: true }, 4],
    [{ useNodePriority: true }, 8],
  ] as const) {
    expect(told('cuGraphInstantiateWithParams', () => graph.instantiate(options)).sizes(2, 1)).toEqual([bits])
  }
})
