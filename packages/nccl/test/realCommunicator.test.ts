import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const library = process.env['SHOAL_NCCL_LIBRARY']

// Without a GPU the real library reaches only its first CUDA call. Every way to create a communicator must fail there
// in time, with NCCL's own message, and without a hang or crash.
const script = `
  import { Communicator, communicatorConfigFields, ncclHeaderVersion, ncclVersion, UniqueId } from '@shoal/nccl'
  const error = (promise) => promise.then(() => null, ({ code, api, lastError, isSticky }) => ({ code, api, lastError, isSticky }))
  const id = () => UniqueId.create()
  const one = { device: 0, rank: 0, worldSize: 1, timeout: 10_000 }
  const config = { blocking: false, commName: 'a', CTAPolicy: 'efficiency' }
  const errors = {
    initAll: await error(Communicator.initAll([0], { timeout: 10_000 })),
    initAllConfig: await error(Communicator.initAll([0, 1], { config, timeout: 10_000 })),
    initRank: await error(Communicator.initRank({ ...one, id: id() })),
    initRankConfig: await error(Communicator.initRank({ ...one, id: id(), config })),
    blocking: await error(Communicator.initRank({ ...one, id: id(), config: { blocking: true, minCTAs: 2, maxCTAs: 4 } })),
    scalable: await error(Communicator.initRank({ ...one, worldSize: 2, id: [id(), id()], config })),
    grown: await error(Communicator.joinGrown({ ...one, rank: 1, worldSize: 2, id: id() })),
  }
  console.log(JSON.stringify({
    version: ncclVersion().value, header: ncclHeaderVersion().value, fields: communicatorConfigFields(), errors,
  }))
`

test('the real libnccl accepts all configs, and every way to make a communicator', async (context) => {
  if (library === undefined || library === '') {
    context.skip('no libnccl on this machine: set SHOAL_NCCL_LIBRARY')
    return
  }
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2', NCCL_DEBUG: 'NONE' },
    timeout: 60_000,
  })
  const { version, header, fields, errors } = JSON.parse(stdout) as {
    version: number
    header: number
    fields: string[]
    errors: { readonly [way: string]: { code: string; api: string; lastError: string; isSticky: boolean } | null }
  }
  expect(header).toBe(23007)
  expect(fields).toContain('blocking')
  expect(fields.includes('maxP2pPeers')).toBe(version >= 23003)
  if (version === header) expect(fields).toHaveLength(18)
  const apis = {
    initAll: 'ncclCommInitAll',
    initAllConfig: 'ncclCommInitRankConfig',
    initRank: 'ncclCommInitRank',
    initRankConfig: 'ncclCommInitRankConfig',
    blocking: 'ncclCommInitRankConfig',
    scalable: 'ncclCommInitRankScalable',
    grown: 'ncclCommGrow',
  }
  for (const [way, api] of Object.entries(apis)) {
    expect(errors[way], way).toMatchObject({ code: 'ncclUnhandledCudaError', api, isSticky: true })
    expect(errors[way]?.lastError).not.toBe('')
  }
}, 90_000)
