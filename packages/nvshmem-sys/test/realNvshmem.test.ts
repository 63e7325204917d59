import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { NativeMemory, readCString } from '@shoal/ffi'
import * as nvshmem from '@shoal/nvshmem-sys'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

interface Spec {
  headerVersion: number
  functions: { name: string; since: number }[]
}

const spec = JSON.parse(
  readFileSync(new URL('../../../tooling/bindgen/spec/nvshmem.json', import.meta.url), 'utf8'),
) as Spec

function missing(): string | undefined {
  try {
    nvshmem.nvshmem.load()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnvshmem_host on this machine: set SHOAL_NVSHMEM_LIBRARY'
    throw error
  }
}

const reason = missing()

/**
 * Runs a module with the real library in a separate process, because NVSHMEM ends the process if it is not initialized.
 */
function run(source: string): { status: number | null; output: string } {
  const { SHOAL_DEVICE: _, ...environment } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    cwd: fileURLToPath(new URL('../', import.meta.url)),
    encoding: 'utf8',
    timeout: 50_000,
    env: { ...environment, NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME: 'lo' },
  })
  return { status, output: stdout + stderr }
}

describe('the real libnvshmem_host', () => {
  test('returns its version in three consistent ways', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const [major, minor, patch] = [new Int32Array(1), new Int32Array(1), new Int32Array(1)]
    nvshmem.nvshmemx_vendor_get_version_info(major, minor, patch)
    const version = [major[0], minor[0], patch[0]].join('.')
    expect(nvshmem.nvshmem.versionText).toBe(version)
    expect(nvshmem.nvshmem.version).toBeGreaterThanOrEqual(30000)
    const name = new Uint8Array(nvshmem.NVSHMEM_MAX_NAME_LEN)
    nvshmem.nvshmem_info_get_name(name)
    expect(Buffer.from(name).toString('latin1').split('\0')[0]).toBe(`NVSHMEM v${version}`)
    // This is the version of the OpenSHMEM specification.
    nvshmem.nvshmem_info_get_version(major, minor)
    expect([major[0], minor[0]]).toEqual([nvshmem.NVSHMEM_MAJOR_VERSION, nvshmem.NVSHMEM_MINOR_VERSION])
  })

  test('has every function of its version and earlier versions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const installed = nvshmem.nvshmem.version as number
    const expected = spec.functions.filter(({ since }) => since <= installed)
    if (installed >= spec.headerVersion) expect(expected.length).toBe(spec.functions.length)
    expect(expected.filter(({ name }) => !nvshmem.nvshmem.has(name)).map(({ name }) => name)).toEqual([])
  })

  test('reports that it is not initialised', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const { NVSHMEM_STATUS_NOT_INITIALIZED } = nvshmem.nvshmemx_init_status_t
    expect(nvshmem.nvshmemx_init_status()).toBe(NVSHMEM_STATUS_NOT_INITIALIZED)
    expect(nvshmem.nvshmemid_init_status()).toBe(NVSHMEM_STATUS_NOT_INITIALIZED)
  })

  test('makes unique ids that differ and contain their version', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const { status, output } = run(`
      import * as n from '@shoal/nvshmem-sys'
      const make = () => n.nvshmemx_uniqueid_t.allocate(n.NVSHMEMX_UNIQUEID_INITIALIZER)
      const [one, other] = [make(), make()]
      console.log(n.nvshmemx_get_uniqueid(one), n.nvshmemx_get_uniqueid(other), Buffer.compare(one, other) !== 0)
      console.log(n.nvshmemx_uniqueid_t.read(one).version === n.structVersion(n.nvshmemx_uniqueid_t.size))`)
    expect(output).toBe('0 0 true\ntrue\n')
    expect(status).toBe(0)
  })

  test('completes the attributes of a start by unique id', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const id = NativeMemory.allocate(nvshmem.nvshmemx_uniqueid_t.size)
    const attributes = nvshmem.nvshmemx_init_attr_t.allocate(nvshmem.NVSHMEMX_INIT_ATTR_INITIALIZER)
    expect(nvshmem.nvshmemx_set_attr_uniqueid_args(3, 5, id, attributes)).toBe(nvshmem.nvshmemx_status.NVSHMEMX_SUCCESS)
    const { version, args } = nvshmem.nvshmemx_init_attr_t.read(attributes)
    expect(version).toBe(nvshmem.structVersion(144))
    expect(args.version).toBe(nvshmem.structVersion(128))
    expect(args.uid_args).toEqual({ version: nvshmem.structVersion(24), id: id.address, myrank: 3, nranks: 5 })
    expect(nvshmem.nvshmemx_set_attr_mpi_comm_args(0x1234n, attributes)).toBe(0)
    expect(nvshmem.nvshmemx_init_attr_t.read(attributes).mpi_comm).toBe(0x1234n)
    id.dispose()
  })

  test('bootstraps a single PE by unique id, although memory and transfers need a GPU', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const { status, output } = run(`
      import { NativeMemory } from '@shoal/ffi'
      import * as n from '@shoal/nvshmem-sys'
      const id = NativeMemory.allocate(n.nvshmemx_uniqueid_t.size)
      n.nvshmemx_uniqueid_t.write(id, n.NVSHMEMX_UNIQUEID_INITIALIZER)
      const attributes = n.nvshmemx_init_attr_t.allocate(n.NVSHMEMX_INIT_ATTR_INITIALIZER)
      n.nvshmemx_get_uniqueid(id)
      n.nvshmemx_set_attr_uniqueid_args(0, 1, id, attributes)
      const flags = n.nvshmemx_init_flags.NVSHMEMX_INIT_WITH_UNIQUEID
      console.log(n.nvshmemx_hostlib_init_attr(flags, attributes), n.nvshmemx_init_status() >= 1)
      console.log(n.nvshmem_my_pe(), n.nvshmem_n_pes())`)
    expect(output).toContain('0 true\n0 1\n')
    expect(status).toBe(0)
  })

  test.for(['nvshmem_quiet()', 'nvshmem_malloc(16)', 'nvshmem_float_p(null, 1, 0)', 'nvshmem_barrier_all()'])(
    'ends the process with its own message when %s is called before init',
    (call, { skip }) => {
      if (reason !== undefined) return skip(reason)
      const { status, output } = run(`
        import * as n from '@shoal/nvshmem-sys'
        process.on('exit', () => console.log('handlers run'))
        n.${call}
        console.log('returned')`)
      expect(output).toMatch(/called before (NVSHMEM initialization has completed|nvshmem_init)/)
      expect(output).not.toContain('returned')
      expect(output).not.toContain('handlers run')
      expect(status).toBe(255)
    },
  )

  test.for(['nvshmem_int_atomic_fetch(cell, 0)', 'nvshmemx_buffer_register(cell, 8)'])(
    'crashes instead of returning from %s before init',
    (call, { skip }) => {
      if (reason !== undefined) return skip(reason)
      const { status, output } = run(`
        import * as n from '@shoal/nvshmem-sys'
        const cell = new BigInt64Array(1)
        n.${call}
        console.log('returned')`)
      expect(output).not.toContain('returned')
      expect(status).not.toBe(0)
    },
  )

  test('answers queries that need no init: no PE, no peer', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const { output, status } = run(`
      import * as n from '@shoal/nvshmem-sys'
      const { NVSHMEM_TEAM_WORLD } = n.nvshmem_team_id_t
      console.log(n.nvshmem_n_pes(), n.nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD), n.nvshmem_ptr(null, 0))`)
    expect(output).toMatch(/^-?\d+ -?\d+ 0n\n$/)
    expect(status).toBe(0)
  })

  test('returns texts that can be read', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const memory = NativeMemory.allocate(nvshmem.NVSHMEM_MAX_NAME_LEN)
    nvshmem.nvshmem_info_get_name(memory)
    expect(readCString(memory.address)).toMatch(/^NVSHMEM v/)
    memory.dispose()
  })
})
