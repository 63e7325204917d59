import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const library = process.env['SHOAL_NCCL_LIBRARY'] ?? ''
const folder = fileURLToPath(new URL('..', import.meta.url))

/** Returns the output of a script with the real libnccl. The library finds no GPU in the software device's driver. */
function runReal(script: string, environment: Record<string, string> = {}): unknown {
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: folder,
    env: { ...process.env, SHOAL_DEVICE: 'sim', NCCL_DEBUG: 'NONE', ...environment },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  // NCCL may print too. The answer is the last line.
  return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '')
}

const prelude = `
  import { deviceResourceNeeds, group, groupOffThread, llA2ASlots, NcclMemory, NcclParameter, ncclVersion, simulateGroup } from '@shoal/nccl'
  const caught = (call) => { try { return { value: call() } } catch ({ name, code, api, description }) { return { name, code, api, description } } }
  const tell = (value) => console.log(JSON.stringify(value, (_, v) => typeof v === 'bigint' ? v + 'n' : v))
`

const version = library === '' ? 0 : (runReal(`${prelude} tell(ncclVersion().value)`) as number)

/** Returns why a test that needs this version of the real library cannot run; undefined if it can. */
function missing(since: number): string | undefined {
  if (library === '') return 'no libnccl on this machine: set SHOAL_NCCL_LIBRARY'
  return version < since ? `libnccl ${version} is older than ${since}` : undefined
}

test('the real libnccl lists parameters with names, and values as typed values, text and bytes', ({ skip }) => {
  const reason = missing(23003)
  if (reason !== undefined) return skip(reason)
  const script = `${prelude}
    const keys = NcclParameter.keys()
    tell({
      keys,
      all: keys.map((key) => { const p = NcclParameter.bind(key); return [key, p.type ?? null, p.value, p.text, [...p.bytes]] }),
      levels: NcclParameter.bind('NCCL_DEBUG_TIMESTAMP_LEVELS').readInteger('u32'),
      subsystems: NcclParameter.bind('NCCL_DEBUG_SUBSYS').readInteger('u64'),
      format: NcclParameter.bind('NCCL_DEBUG_TIMESTAMP_FORMAT').readText(),
      byKey: NcclParameter.read('NCCL_DEBUG_TIMESTAMP_LEVELS'),
      wrong: [
        caught(() => NcclParameter.bind('NCCL_NO_SUCH')),
        caught(() => NcclParameter.read('NCCL_NO_SUCH')),
        caught(() => NcclParameter.bind('NCCL_DEBUG_TIMESTAMP_LEVELS').readInteger('i32')),
        caught(() => NcclParameter.bind('NCCL_DEBUG_TIMESTAMP_LEVELS').readText()),
        caught(() => NcclParameter.bind('NCCL_DEBUG_TIMESTAMP_LEVELS').readInteger('f32')),
        caught(() => NcclParameter.bind(7)),
        caught(() => NcclParameter.bind('NCCL\\0DEBUG')),
      ],
    })`
  const found = runReal(script, {
    NCCL_DEBUG_TIMESTAMP_LEVELS: 'WARN,INFO',
    NCCL_DEBUG_TIMESTAMP_FORMAT: `[${'%T '.repeat(10)}]`,
  }) as {
    keys: string[]
    all: [string, string | null, unknown, string, number[]][]
    levels: number
    subsystems: string
    format: string
    byKey: string
    wrong: unknown[]
  }
  expect(found.keys).toContain('NCCL_DEBUG')
  expect(new Set(found.keys).size).toBe(found.keys.length)
  const types = Object.fromEntries(found.all.map(([key, type]) => [key, type]))
  expect(types).toMatchObject({
    NCCL_DEBUG_TIMESTAMP_LEVELS: 'u32',
    NCCL_DEBUG_SUBSYS: 'u64',
    NCCL_DEBUG_TIMESTAMP_FORMAT: 'text',
    NCCL_DEBUG: null,
  })
  for (const [, type, value, text, bytes] of found.all) {
    if (type === null) expect(value).toBe(text)
    if (type === 'u32') expect(new Uint32Array(Uint8Array.from(bytes).buffer)[0]).toBe(value)
    if (type === 'text') expect(Buffer.from(bytes).toString()).toBe(`${String(value)}\0`)
  }
  // Flags of WARN and INFO.
  expect(found.levels).toBe((1 << 2) | (1 << 3))
  expect(found.byKey.split(',').sort()).toEqual(['INFO', 'WARN'])
  expect(found.subsystems).toMatch(/^\d+n$/)
  expect(found.format).toContain('%T %T')
  const refused = (api: string) => ({
    code: 'ncclInvalidArgument',
    api,
    description: expect.stringContaining('invalid argument'),
  })
  expect(found.wrong).toMatchObject([
    refused('ncclParamBind'),
    refused('ncclParamGetParameter'),
    refused('ncclParamGetI32'),
    refused('ncclParamGetStr'),
    { name: 'TypeError' },
    { name: 'TypeError' },
    { name: 'TypeError' },
  ])
})

test('the real libnccl lists more parameters with NCCL_PARAM_DUMP_ALL', ({ skip }) => {
  const reason = missing(23003)
  if (reason !== undefined) return skip(reason)
  const script = `${prelude} NcclParameter.dump(); tell(NcclParameter.keys().length)`
  const documented = runReal(script) as number
  expect(runReal(script, { NCCL_PARAM_DUMP_ALL: 'true' })).toBeGreaterThanOrEqual(documented)
  expect(documented).toBeGreaterThan(0)
})

test('the real libnccl computes the needs of device communicator resources', ({ skip }) => {
  const reason = missing(22907)
  if (reason !== undefined) return skip(reason)
  const found = runReal(`${prelude}
    const team = { size: 8, rank: 3, stride: 1 }
    tell({
      slots: [llA2ASlots(100, 16), llA2ASlots(7, 4), llA2ASlots(3, 9), llA2ASlots(0, 8)],
      lsa: deviceResourceNeeds({ kind: 'lsaBarrier', team, barriers: 5 }),
      gin: deviceResourceNeeds({ kind: 'ginBarrier', team, barriers: 4 }),
      llA2A: deviceResourceNeeds({ kind: 'llA2A', blocks: 4, slots: 10 }),
      outbox: deviceResourceNeeds({ kind: 'ginOutbox', blocks: 4, sizeLog2: 10 }),
      inbox: deviceResourceNeeds({ kind: 'ginInboxA2A', peers: team, blocks: 4, sizeLog2: 10 }),
      buffer: deviceResourceNeeds({ kind: 'buffer', byteLength: 100, alignment: 64, ginSignals: 2, ginCounters: 3 }),
      wrong: [
        caught(() => deviceResourceNeeds({ kind: 'buffer', byteLength: 100, alignment: 48 })),
        caught(() => deviceResourceNeeds({ kind: 'other' })),
        caught(() => deviceResourceNeeds({ kind: 'lsaBarrier', team: { ...team, rank: 8 }, barriers: 5 })),
        caught(() => deviceResourceNeeds({ kind: 'lsaBarrier', team, barriers: -1 })),
        caught(() => deviceResourceNeeds({ kind: 'ginOutbox', blocks: 4, sizeLog2: 31 })),
        caught(() => llA2ASlots(1, 0)),
      ],
    })`)
  const none = { ginSignals: 0, ginCounters: 0 }
  expect(found).toMatchObject({
    slots: [200, 7, 6, 0],
    // Three numbers of four bytes per barrier, and one per barrier and rank.
    lsa: { byteLength: 4 * (3 * 5 + 5 * 8), ...none },
    gin: { ginSignals: 4 * 8, ginCounters: 0 },
    llA2A: { alignment: 16, ...none },
    buffer: { byteLength: 100, alignment: 64, ginSignals: 2, ginCounters: 3 },
    wrong: ['RangeError', 'TypeError', 'RangeError', 'RangeError', 'RangeError', 'RangeError'].map((name) => ({
      name,
    })),
  })
  const { outbox, inbox } = found as Record<'outbox' | 'inbox', { byteLength: number; ginSignals: number }>
  expect(outbox.byteLength).toBeGreaterThanOrEqual(4 * 1024)
  expect(inbox.byteLength).toBeGreaterThanOrEqual(4 * 1024)
  expect(inbox.ginSignals).toBeGreaterThan(0)
})

test('the real libnccl accepts empty groups, and reports an unusable device', ({ skip }) => {
  const reason = missing(22203)
  if (reason !== undefined) return skip(reason)
  const found = runReal(`${prelude}
    const outcomes = {
      plain: group(() => group(() => 'plain')),
      later: await groupOffThread(() => 'later'),
      simulated: simulateGroup(() => undefined).microseconds ?? null,
      after: group(() => 'after'),
      memory: await NcclMemory.allocate(0, 4096).then(() => null, ({ library, api }) => ({ library, api })),
    }
    tell(outcomes)`)
  expect(found).toMatchObject({
    plain: 'plain',
    later: 'later',
    after: 'after',
    memory: { library: 'NCCL', api: 'ncclMemAlloc' },
  })
  const { simulated } = found as { simulated: number | null }
  expect(simulated === null || simulated >= 0).toBe(true)
})
