import assert from 'node:assert/strict'
import { driverVersion, StatusError, Stream } from '@shoal/driver'
import {
  coreDumpSetting,
  entryPoint,
  logPosition,
  ProcessCheckpoint,
  profile,
  readLogs,
  setCoreDumpSetting,
} from '@shoal/driver/diagnostics'
import { emptyNode, Graph, UserObject } from '@shoal/driver/graph'
import type { ConformanceCase, Suite } from '../../suite.js'

const ranges: ConformanceCase = {
  name: 'profiler ranges around work',
  async run(t) {
    const stream = t.own(Stream.create(t.device))
    assert.equal(
      profile(t.device, () => 5),
      5,
    )
    await profile(t.device, () => stream.synchronize())
  },
}

const settings: ConformanceCase = {
  name: 'settings of core dumps',
  async run(t) {
    if (!driverVersion().atLeast(12, 1)) t.skip('core dumps have settings from CUDA 12.1')
    const before = coreDumpSetting('process', 'lightweight')
    setCoreDumpSetting('process', 'lightweight', !before)
    assert.equal(coreDumpSetting('process', 'lightweight'), !before)
    setCoreDumpSetting('process', 'lightweight', before)
    assert.equal(coreDumpSetting('process', 'lightweight'), before)
    assert.equal(typeof coreDumpSetting('process', 'file'), 'string')
    assert.equal(typeof coreDumpSetting(t.device, 'enableOnException'), 'boolean')
  },
}

const logs: ConformanceCase = {
  name: 'the log of the driver, from a place on',
  async run(t) {
    if (!driverVersion().atLeast(12, 9)) t.skip('the driver logs from CUDA 12.9')
    const since = logPosition()
    const { text, position } = readLogs({ since })
    assert.equal(typeof text, 'string')
    assert.ok(position >= since)
  },
}

const points: ConformanceCase = {
  name: 'entry points by name, version and mode',
  async run() {
    const found = entryPoint('cuMemAlloc')
    assert.ok(found.result === 'found' && found.address > 0n)
    assert.equal(entryPoint('cuShoalHasNoSuchFunction').result, 'notFound')
    const modes = (['legacy', 'per-thread'] as const).map((mode) => entryPoint('cuStreamQuery', { mode }).address)
    assert.notEqual(modes[0], modes[1])
  },
}

const checkpoint: ConformanceCase = {
  name: 'the state of this process',
  requires: { only: 'hardware' },
  async run(t) {
    if (!driverVersion().atLeast(12, 8)) t.skip('processes are checkpointed from CUDA 12.8')
    // The process uses CUDA only after a context exists.
    t.own(Stream.create(t.device))
    let state: string
    try {
      ;({ state } = new ProcessCheckpoint(process.pid))
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      return t.skip(`this host does not let processes be checkpointed: ${error.message}`)
    }
    assert.equal(state, 'running')
  },
}

const objects: ConformanceCase = {
  name: 'a user object ends with the last graph that has it',
  async run(t) {
    let ends = 0
    const object = t.own(UserObject.create(() => void (ends += 1)))
    const graph = t.own(Graph.create(t.device))
    graph.add(emptyNode())
    object.retainBy(graph)
    const exec = t.own(graph.instantiate())
    const stream = t.own(Stream.create(t.device))
    object.dispose()
    graph.dispose()
    exec.launch(stream)
    await stream.synchronize()
    assert.equal(ends, 0)
    exec.dispose()
    const limit = Date.now() + 10_000
    while (ends === 0 && Date.now() < limit) await new Promise((resolve) => setTimeout(resolve, 1))
    assert.equal(ends, 1)
  },
}

export const diagnosticsSuite: Suite = {
  name: 'driver: diagnostics',
  cases: [ranges, settings, logs, points, checkpoint, objects],
}
