import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { AddressRange, allocationGranularity, Device, DeviceBuffer, PhysicalMemory } = await import('@shoal/driver')
const { Communicator } = await import('@shoal/nccl')
const { Session, UniqueId } = await import('@shoal/nvshmem')
const { kinds, writeOnly } = await import('./access/kinds.mjs')

interface Outcome {
  readonly outcome: 'accepted' | 'refused' | 'lost'
  readonly error?: string
}

interface Use extends Outcome {
  readonly way: string
  readonly user: 0 | 1
}

type Truth = 'launch' | 'read' | 'viewRead' | 'batchRead' | 'write' | 'viewWrite' | 'batchWrite' | 'fill'

interface Answer {
  readonly results: readonly Use[]
  readonly truths: readonly { readonly [T in Truth]?: Outcome }[]
}

/** The device's own answer, by address alone, that each way of the packages must match. */
const truthOf: { readonly [way: string]: Truth } = {
  launch: 'launch',
  prepare: 'launch',
  kernelNode: 'launch',
  captured: 'launch',
  'launch of a view': 'launch',
  'launch of runtime': 'launch',
  'prepare of runtime': 'launch',
  'prepared earlier': 'launch',
  'node of earlier': 'launch',
  'captured earlier': 'launch',
  copyFrom: 'read',
  'copyFrom of runtime': 'read',
  'copyFrom of a view': 'viewRead',
  'copyNode from it': 'read',
  'captured copy from it': 'read',
  'prepared copies from it': 'batchRead',
  'copy to it': 'viewWrite',
  'prepared copies to it': 'batchWrite',
  'copyNode to it': 'write',
  fill: 'fill',
}

function ask(kind: string): Promise<Answer> {
  const script = fileURLToPath(new URL('access/matrix.mjs', import.meta.url))
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, kind], { stdio: ['ignore', 'pipe', 'pipe'] })
    const texts = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        texts[name] += text
      })
    }
    child.on('error', reject)
    child.on('close', (code, signal) => {
      if (code === 0) resolve(JSON.parse(texts.stdout))
      else reject(new Error(`${kind}: code ${code}, signal ${signal}\n${texts.stderr}`))
    })
  })
}

const answers = new Map<string, Answer>()
const accepted = (outcome: Outcome | undefined): boolean => outcome?.outcome === 'accepted'

describe('memory is accepted exactly if the device can use it', () => {
  test.each(Object.keys(kinds))('%s', async (kind) => {
    const { results, truths } = await ask(kind)
    answers.set(kind, { results, truths })
    const wrong = results.filter(({ way, user, outcome }) => {
      const truth = truths[user]?.[truthOf[way] as Truth]
      return outcome === 'lost' || truth === undefined || (outcome === 'accepted') !== accepted(truth)
    })
    expect(wrong.map(({ way, user, ...outcome }) => ({ way, user, ...outcome }))).toEqual([])
    expect(results.length).toBeGreaterThan(writeOnly.has(kind) ? 2 : 20)
  })

  test('and a refused launch throws a TypeError that names the argument', () => {
    const refusals = [...answers.values()].flatMap(({ results }) =>
      results.filter(({ way, outcome }) => truthOf[way] === 'launch' && outcome === 'refused'),
    )
    for (const { way, error } of refusals) {
      const [where, name] = /earlier/.test(way)
        ? ['\\w+\\.launch', '(args\\[0\\]|an argument of a kernel)']
        : ['\\w+(\\.\\w+)?', 'args\\[0\\]']
      expect(error).toMatch(
        new RegExp(
          `^TypeError: ${where}: ${name} must be memory that device [01], where the kernel runs, can use, not`,
        ),
      )
    }
    expect(refusals.length).toBeGreaterThan(50)
  })

  test('and both outcomes occur for each method and each device', () => {
    const seen = new Set(
      [...answers.values()].flatMap(({ results }) =>
        results.map(({ way, user, outcome }) => `${way} ${user} ${outcome}`),
      ),
    )
    for (const way of Object.keys(truthOf)) {
      for (const outcome of ['accepted', 'refused'])
        expect(
          [...seen].some((one) => one.startsWith(way) && one.endsWith(outcome)),
          `${way} ${outcome}`,
        ).toBe(true)
    }
  })
})

describe('access checks of libraries with kernels', () => {
  const [device] = [Device.get(0)]
  const mapped = (access: 'readWrite' | 'none') => {
    const unit = allocationGranularity(device)
    const range = AddressRange.reserve(unit).map(PhysicalMemory.create(device, unit), { access: [] })
    range.setAccess(device, access)
    return DeviceBuffer.view(device, range, 'f32', { length: 8 })
  }
  const refusal = (api: string, name: string) =>
    `${api}: ${name} must be memory that device 0, where the kernel runs, can use, not memory of device 0 that is mapped without access`

  test('let an NCCL collective use mapped memory only with access', async () => {
    const [communicator] = await Communicator.initAll([device])
    if (communicator === undefined) throw new Error('no communicator')
    using stream = device.createStream()
    const [granted, closed] = [mapped('readWrite'), mapped('none')]
    granted.fill(2, { stream })
    communicator.allReduce(granted, granted, { stream })
    expect([...(await granted.toArray({ stream }))]).toEqual(new Array(8).fill(2))
    expect(() => communicator.allReduce(closed, granted, { stream })).toThrow(refusal('Communicator.allReduce', 'send'))
    expect(() => communicator.allReduce(granted, closed, { stream })).toThrow(TypeError)
    await communicator.destroy()
  })

  test('let NVSHMEM use mapped memory only with access', async () => {
    const session = await Session.init({ device, rank: 0, worldSize: 1, id: UniqueId.create() })
    const buffer = await session.allocate('f32', 8)
    using stream = device.createStream()
    const [granted, closed] = [mapped('readWrite'), mapped('none')]
    granted.fill(3, { stream })
    await session.putOnStream(buffer, granted, { pe: 0, stream })
    await expect(session.putOnStream(buffer, closed, { pe: 0, stream })).rejects.toThrow(/must be memory that device 0/)
    await session.finalize()
  })
})
