// What a captured call uses is there at each launch of the graph, or the launch throws.
import { readdirSync, readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { DisposedError } from '@shoal/types'
import { describe, expect, test, vi } from 'vitest'
import { capturedCalls, withoutNeeds } from './support/capturedCalls.js'
import { stream } from './support/graphObjects.js'

const { Graph } = await import('@shoal/driver/graph')

setFlagsFromString('--expose-gc')
// The objects of most tests are dropped on purpose.
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
  test.each(objects)('%s names %s when it was disposed of before a launch', (name, _, index) => {
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

  test.each(Object.keys(capturedCalls))('%s keeps what the program dropped', async (name) => {
    const { graph, refs } = dropped(name)
    await collected()
    using step = graph.instantiate()
    graph.dispose()
    await collected()
    expect([launch(step), refs.map((ref) => ref.deref() !== undefined)]).toEqual([undefined, refs.map(() => true)])
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

/** The functions and methods of cuda-base that a stream is given to. */
function namesInSources(): string[] {
  const folder = new URL('../../cuda-base/src/', import.meta.url)
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
