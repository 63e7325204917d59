import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { nvshmem } from '@shoal/nvshmem-sys'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

function missing(): string | undefined {
  try {
    nvshmem.load()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnvshmem_host on this machine: set SHOAL_NVSHMEM_LIBRARY'
    throw error
  }
}

const reason = missing()

/** Runs a program with the real library and the software device's driver, in which NVSHMEM finds no GPU. */
function run(program: string, environment: NodeJS.ProcessEnv = {}): unknown {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    encoding: 'utf8',
    timeout: 50_000,
    env: {
      ...process.env,
      SHOAL_NVSHMEM_LIBRARY: nvshmem.load().path,
      SHOAL_DEVICE: 'sim',
      NODE_OPTIONS: '',
      NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME: 'lo',
      ...environment,
    },
  })
  if (status !== 0) throw new Error(`exit ${status}\n${stderr}`)
  return JSON.parse(stdout.slice(stdout.lastIndexOf('\n{') + 1)) as unknown
}

describe('the real libnvshmem_host, without a GPU', () => {
  test('returns its version, its name and its init status', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const found = run(`
      import * as n from '@shoal/nvshmem'
      const version = n.nvshmemVersion()
      console.log('\\n' + JSON.stringify({
        version, name: n.nvshmemName(), open: n.openShmemVersion(), status: n.nvshmemStatus(),
        isKnown: version.major === n.nvshmemHeaderVersion().major,
      }))`) as { version: string }
    expect(found).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      name: `NVSHMEM v${found.version}`,
      open: { major: 1, minor: 3 },
      status: 'not-initialized',
      isKnown: true,
    })
  })

  test('makes ids that differ, and accepts them', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const found = run(`
      import { UniqueId } from '@shoal/nvshmem'
      const [one, other] = [UniqueId.create(), UniqueId.create()]
      const back = UniqueId.fromBase64(one.toString())
      console.log('\\n' + JSON.stringify({ differ: !one.equals(other), same: back.equals(one) }))`)
    expect(found).toEqual({ differ: true, same: true })
  })

  test('refuses a network interface that does not exist', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const found = run(
      `
      import { UniqueId } from '@shoal/nvshmem'
      let error
      try { UniqueId.create() } catch (thrown) { error = thrown }
      console.log('\\n' + JSON.stringify({ error }))`,
      { NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME: 'nosuch9' },
    )
    expect(found).toMatchObject({
      error: {
        name: 'StatusError',
        library: 'NVSHMEM',
        api: 'nvshmemx_get_uniqueid',
        libraryVersion: expect.stringMatching(/^\d/),
      },
    })
  })

  test('connects the PEs, and the session reports the missing GPU', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const found = run(`
      import { Session, UniqueId } from '@shoal/nvshmem'
      const options = { device: 0, rank: 0, worldSize: 1, id: UniqueId.create() }
      const outcomes = []
      for (const _ of [1, 2]) outcomes.push(await Session.init(options).catch((error) => error))
      console.log('\\n' + JSON.stringify({ outcomes }))
      process.exit()`)
    expect(found).toMatchObject({
      outcomes: [
        { code: 'NVSHMEMX_ERROR_GPU_NOT_SELECTED', api: 'nvshmemx_hostlib_init_attr' },
        { code: 'SHOAL_NVSHMEM_SESSION_EXISTS' },
      ],
    })
  })

  test('without the other PE: init times out, and the process exits', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const found = run(`
      import { Session, UniqueId } from '@shoal/nvshmem'
      const from = performance.now()
      const options = { device: 0, rank: 0, worldSize: 2, id: UniqueId.create(), timeout: 500 }
      const error = await Session.init(options).catch((thrown) => thrown)
      console.log('\\n' + JSON.stringify({ error, took: performance.now() - from }))`)
    expect(found).toMatchObject({ error: { code: 'SHOAL_TIMEOUT', operation: 'Session.init' } })
    expect((found as { took: number }).took).toBeLessThan(60_000)
  })
})
