// At each launch of a graph, the objects of its captured calls exist, or the launch throws.
import { readdirSync, readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { DisposedError } from '@shoal/types'
import { describe, expect, test, vi } from 'vitest'
import { capturedCalls, withoutNeeds } from './support/capturedCalls.js'
import { device, firstOf, other, stream, zeros } from './support/graphObjects.js'

const { DeviceBuffer } = await import('@shoal/driver')
const { Graph } = await import('@shoal/driver/graph')

type GraphType = import('@shoal/driver/graph').Graph

setFlagsFromString('--expose-gc')
// Most tests drop their objects on purpose, which causes leak warnings.
vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
const collect = runInNewContext('gc') as () => void

function captured(name: string) {
  const { call, ...made } = (capturedCalls[name] as (typeof capturedCalls)[string])()
  return { graph: Graph.capture(stream, () => void call(stream)), ...made }
}

function launch(step: { launch(on: typeof stream): void }): unknown {
  try {
    step.launch(stream)
    stream.synchronizeSync()
    return undefined
  } catch (error) {
    return error
  }
}

const objects = Object.keys(capturedCalls).flatMap((name) =>
  captured(name).uses.map(([object], index) => [name, String(object), index] as const),
)

describe('a captured call', () => {
  test.each(objects)('%s names %s if it was disposed before a launch', (name, _, index) => {
    const { graph, uses } = captured(name)
    using whole = graph
    const [object, used] = uses[index] as (typeof uses)[number]
    using step = whole.instantiate()
    using copy = whole.clone().instantiate()
    expect([launch(step), launch(copy)]).toEqual([undefined, undefined])
    used[Symbol.dispose]()
    for (const attempt of [launch(step), launch(copy), launch({ launch: () => whole.instantiate() })]) {
      expect(attempt).toBeInstanceOf(DisposedError)
      const { object: named } = attempt as DisposedError
      expect(named).toMatch(object)
    }
  })

  test.each(Object.keys(capturedCalls))('%s keeps objects that the program dropped', async (name) => {
    const { graph, refs } = dropped(name)
    await collected()
    using step = graph.instantiate()
    graph.dispose()
    await collected()
    expect([launch(step), refs.map((ref) => ref.deref() !== undefined)]).toEqual([undefined, refs.map(() => true)])
  })
})

describe('a graph with captured calls', () => {
  const filled = (): { graph: GraphType; memory: ReturnType<typeof zeros> } => {
    const memory = zeros()
    return { memory, graph: Graph.capture(stream, () => memory.fill(7, { stream })) }
  }

  test('replaces the resources of an executable graph that is updated from it', () => {
    const [before, after] = [filled(), filled()]
    using step = before.graph.instantiate()
    expect(step.update(after.graph).result).toBe('success')
    before.memory.dispose()
    expect(launch(step)).toBeUndefined()
    after.memory.dispose()
    expect(launch(step)).toBeInstanceOf(DisposedError)
    expect(() => step.update(after.graph)).toThrow(DisposedError)
    for (const { graph } of [before, after]) graph.dispose()
  })

  test('keeps resources of streams that joined the capture, and none that other streams use meanwhile', () => {
    const [forked, apart] = [zeros(), zeros()]
    using elsewhere = device.createStream({ nonBlocking: true })
    using graph = Graph.capture(stream, () => {
      other.waitEvent(stream.record())
      forked.fill(7, { stream: other })
      stream.waitEvent(other.record())
      apart.fill(5, { stream: elsewhere })
    })
    using step = graph.instantiate()
    apart.dispose()
    expect(launch(step)).toBeUndefined()
    forked.dispose()
    expect(launch(step)).toBeInstanceOf(DisposedError)
  })

  test('ignores a capture on another stream nested within its own', () => {
    const [outer, inner] = [zeros(), zeros()]
    let within: GraphType | undefined
    using around = Graph.capture(stream, () => {
      within = Graph.capture(other, () => inner.fill(5, { stream: other }))
      outer.fill(7, { stream })
    })
    using step = around.instantiate()
    inner.dispose()
    expect(launch(step)).toBeUndefined()
    expect(() => within?.instantiate()).toThrow(DisposedError)
    within?.dispose()
    outer.dispose()
    expect(launch(step)).toBeInstanceOf(DisposedError)
  })

  test.each([
    ['a copy', (whole, part) => void whole.addGraph(part.graph)],
    ['a move', (whole, part) => void whole.addGraph(part.graph, { move: true })],
    [
      'a capture into a body',
      (whole, { memory }) => {
        const { bodies } = whole.addConditional({ type: 'if' })
        bodies[0]?.capture(stream, () => memory.fill(1, { stream }))
      },
    ],
  ] satisfies [string, (whole: GraphType, part: ReturnType<typeof filled>) => void][])(
    'passes its resources to the graph that includes it by %s',
    (_, join) => {
      const part = filled()
      using whole = Graph.create(device)
      join(whole, part)
      using step = whole.instantiate()
      part.graph.dispose()
      expect(launch(step)).toBeUndefined()
      part.memory.dispose()
      expect(launch(step)).toBeInstanceOf(DisposedError)
    },
  )

  test('does not depend on memory it allocates and frees itself, or on the stream that captured it', () => {
    using kept = zeros()
    using passing = device.createStream({ nonBlocking: true })
    using graph = Graph.capture(passing, () => {
      using memory = DeviceBuffer.allocateOn(passing, 'u32', 4)
      memory.fill(7, { stream: passing })
      kept.copyFrom(memory.slice(0, 1), { stream: passing })
    })
    using step = graph.instantiate()
    passing.dispose()
    expect(launch(step)).toBeUndefined()
    expect(launch(step)).toBeUndefined()
    expect(firstOf(kept)).toBe(7)
  })

  test('protects memory that it allocates from the garbage collector', async () => {
    const { graph, ref } = ((): { graph: GraphType; ref: WeakRef<object> } => {
      let ref: WeakRef<object> | undefined
      const made = Graph.capture(stream, () => {
        const memory = DeviceBuffer.allocateOn(stream, 'u32', 1).fill(7, { stream })
        ref = new WeakRef(memory)
      })
      return { graph: made, ref: ref as WeakRef<object> }
    })()
    using step = graph.instantiate({ autoFreeOnLaunch: true })
    graph.dispose()
    await collected()
    expect([launch(step), launch(step), ref.deref() !== undefined]).toEqual([undefined, undefined, true])
  })

  test('keeps memory allocated by another graph', () => {
    let memory: ReturnType<typeof zeros> | undefined
    using making = Graph.capture(stream, () => {
      memory = DeviceBuffer.allocateOn(stream, 'u32', 1)
    })
    using made = making.instantiate()
    expect(launch(made)).toBeUndefined()
    using graph = Graph.capture(stream, () => memory?.fill(7, { stream }))
    using step = graph.instantiate()
    expect(launch(step)).toBeUndefined()
    memory?.dispose()
    expect(launch(step)).toBeInstanceOf(DisposedError)
  })

  test('releases all resources when it and its executable graphs are disposed', async () => {
    const { graph, refs } = dropped('DeviceBuffer.copyFrom')
    const step = graph.instantiate()
    graph.dispose()
    step.dispose()
    await collected()
    expect(refs.map((ref) => ref.deref())).toEqual(refs.map(() => undefined))
  })
})

function dropped(name: string) {
  const { graph, uses, isOfViews } = captured(name)
  return { graph, refs: isOfViews === true ? [] : uses.map(([, object]) => new WeakRef(object)) }
}

async function collected(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
}

test('the table has every public function that takes a stream, and every method of Stream', async () => {
  const entries = ['', '/memory', '/texture', '/external', '/graph', '/dlpack'].map((entry) => `@shoal/driver${entry}`)
  const parts: object[] = await Promise.all(entries.map((entry) => import(entry)))
  const exported = new Set(parts.flatMap((part) => Object.keys(part)))
  const { Stream } = await import('@shoal/driver')
  const methods = Object.getOwnPropertyDescriptors(Stream.prototype)
  const found = new Set<string>()
  for (const [name, { value }] of Object.entries(methods))
    if (typeof value === 'function' && !name.startsWith('_') && name !== 'constructor') found.add(`Stream.${name}`)
  for (const name of namesInSources()) if (exported.has(name.replace(/\..*/, ''))) found.add(name)
  const known = new Set([...Object.keys(capturedCalls), ...Object.keys(withoutNeeds)].map((name) => name.split(' ')[0]))
  expect([...found].filter((name) => !known.has(name))).toEqual([])
})

const takesStream =
  /^(?: {2}|export function )(?:async |static )*([a-z]\w*)(?:<.*>)?\(.*\b(?:QueueOptions|ArrayCopyOptions|LaunchConfig|StreamLike|EventUseOptions|stream: Stream)\b/

/** Returns the functions and methods in the sources that take a stream. */
function namesInSources(): string[] {
  const folder = new URL('../src/', import.meta.url)
  const names: string[] = []
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue
    let owner = ''
    for (const line of readFileSync(new URL(file, folder), 'utf8').split('\n')) {
      if (line.startsWith('export function')) owner = ''
      owner = /^export (?:abstract )?class (\w+)/.exec(line)?.[1] ?? owner
      const name = takesStream.exec(line)?.[1]
      if (name !== undefined)
        names.push(owner === '' ? name : `${owner}.${name}`.replace('DeviceTransfers', 'DeviceBuffer'))
    }
  }
  return names
}
