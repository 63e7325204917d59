// Objects of this package keep the resources of captured calls, like those of driver.
import { DisposedError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, Event, PinnedBuffer, prepareCopies, Stream } = await import('@shoal/runtime')
const { Graph } = await import('@shoal/runtime/graph')
const { Library } = await import('@shoal/runtime/library')
const { PitchedBuffer } = await import('@shoal/runtime/memory')
const { CudaArray } = await import('@shoal/runtime/texture')

const stream = Stream.create({ nonBlocking: true })
const zeros = () => DeviceBuffer.zeros('u32', 4)
const code = `
.version 8.5
.target sm_90
.address_size 64
.visible .entry touch(.param .u64 at) { ret; }
`
const one = { grid: 1, block: 1, stream } as const

interface Made {
  readonly call: () => unknown
  readonly uses: readonly Disposable[]
}

const calls: { readonly [name: string]: () => Made } = {
  'DeviceBuffer.fill': () => {
    const memory = zeros()
    return { call: () => memory.fill(7, { stream }), uses: [memory] }
  },
  'DeviceBuffer.copyFrom and copyTo': () => {
    const [to, from, host] = [zeros(), zeros(), PinnedBuffer.allocate('u32', 4)]
    return {
      call: () => {
        to.copyFrom(from, { stream })
        from.copyFrom(host.array, { stream })
        void to.copyTo(host.array, { stream })
      },
      uses: [to, from, host],
    }
  },
  'Kernel.launch and PreparedLaunch.launch': () => {
    const [library, memory, later] = [Library.loadSync(code), zeros(), zeros()]
    const kernel = library.kernel('touch', ['ptr'])
    return {
      call: () => {
        kernel.launch(one, memory)
        kernel.prepare(one, later).launch()
      },
      uses: [library, memory, later],
    }
  },
  'Stream.record': () => {
    const event = Event.create()
    return { call: () => stream.record(event, { external: true }), uses: [event] }
  },
  'PitchedBuffer.fill': () => {
    const memory = PitchedBuffer.zeros('u32', { width: 4, height: 2 })
    return { call: () => memory.fill(7, { stream }), uses: [memory] }
  },
  'CudaArray.copyFrom': () => {
    const [array, memory] = [CudaArray.create({ width: 4, format: 'u32' }), zeros()]
    return { call: () => array.copyFrom(memory, { stream }), uses: [array, memory] }
  },
  'PreparedCopies.launch': () => {
    const [to, from] = [zeros(), zeros()]
    const copies = prepareCopies([{ target: to, source: from }])
    return { call: () => copies.launch({ stream }), uses: [to, from] }
  },
}

describe('a captured call', () => {
  test.each(Object.keys(calls))('%s throws at a launch after an object it uses was disposed', (name) => {
    const make = calls[name] as () => Made
    for (const index of make().uses.keys()) {
      const { call, uses } = make()
      using graph = Graph.capture(stream, () => void call())
      using step = graph.instantiate()
      step.launch(stream)
      stream.synchronizeSync()
      uses[index]?.[Symbol.dispose]()
      expect(() => step.launch(stream)).toThrow(DisposedError)
    }
  })
})
