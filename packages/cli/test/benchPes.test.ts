import { Device, Stream } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { UniqueId as PeId, Session } from '@shoal/nvshmem'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { benchNvshmem, nvshmemTests } from '../src/bench/nvshmem/bench.js'
import { joinAsPe, runAsPe, startPes } from '../src/bench/nvshmem/pes.js'
import { Output } from '../src/bench/report/output.js'
import { runCommand } from '../src/run/command.js'
import { groupOf, job, nothing, read } from './support/bench.js'

// Each test sets whether this process is a rank.
vi.mock('@shoal/launch', async (original) => ({ ...(await original<object>()), bootstrap: vi.fn() }))

useSoftwareDevice({ devices: 2 })
beforeEach(() => void job('single'))
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

describe('PEs of shoal bench', () => {
  test('are started by shoal run: one per device, or the requested number', async () => {
    const run = vi.spyOn(runCommand, 'run').mockResolvedValue(7)
    vi.stubEnv('NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME', undefined)
    for (const words of [[], ['-g', '2']]) {
      expect(await startPes(['put', '-b', '8'], read('put', ...words))).toBe(7)
      const program = expect.stringMatching(/\/bin\/shoal\.js$/)
      expect(run).toHaveBeenLastCalledWith(['-n', '2', '--no-prefix', program, 'bench', 'put', '-b', '8'])
    }
    expect(process.env['NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME']).toBe('lo')
    vi.stubEnv('NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME', 'eth7')
    await startPes([], read('put'))
    expect(process.env['NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME']).toBe('eth7')
    await expect(startPes([], read('put', '-g', '3'))).rejects.toThrow('--devices 3: this machine has 2')
    await expect(startPes([], read('put', '-g', '1'))).rejects.toThrow('NVSHMEM between PEs needs two devices')
  })

  test('are started if this process is not a PE yet', async () => {
    const { dispose } = job('single')
    const run = vi.spyOn(runCommand, 'run').mockResolvedValue(0)
    expect(await benchNvshmem(read('barrier'), ['barrier'])).toBe(0)
    expect([run.mock.calls.length, dispose.mock.calls.length]).toEqual([1, 1])
    expect(await joinAsPe(read('barrier'))).toBeUndefined()
    job('shoal')
    expect(await joinAsPe(read('barrier'))).toMatchObject({ isRank: true })
    expect(nvshmemTests).toEqual(['put', 'get', 'atomic', 'barrier'])
  })

  test.each(['put', 'get', 'atomic'])('measure %s only between two PEs', async (name) => {
    const { dispose } = job('shoal', { rank: 0, worldSize: 1, deviceOrdinal: 0 })
    await expect(benchNvshmem(read(name), [])).rejects.toThrow(`${name} is between two PEs: this job has one rank`)
    expect(dispose).toHaveBeenCalledTimes(1)
  })

  /** Returns an NVSHMEM that does nothing. */
  function made() {
    const session = { finalize: vi.fn(nothing), abandon: vi.fn() }
    const init = vi.spyOn(Session, 'init').mockResolvedValue(session as never)
    vi.spyOn(PeId, 'create').mockReturnValue({ toBytes: () => new Uint8Array(128) } as never)
    vi.spyOn(PeId, 'fromBytes').mockImplementation((bytes) => ({ bytes }) as never)
    return { session, init }
  }

  test('start with the id from the first PE, and end together', async () => {
    const { session, init } = made()
    const lost = new AbortController().signal
    const share = vi.fn(async (_: string, make: () => Uint8Array) => make())
    const group = groupOf([1], { worldSize: 2, lost, share })
    const dispose = vi.spyOn(Stream.prototype, 'dispose')
    expect(
      await runAsPe(read('put', '--timeout', '8'), group, async (pe) => {
        expect(pe).toMatchObject({ rankGroup: group, session })
        expect([session.finalize.mock.calls.length, dispose.mock.calls.length]).toEqual([0, 0])
        return 'result'
      }),
    ).toBe('result')
    expect(share).toHaveBeenCalledWith('nvshmem', expect.any(Function))
    const told = { device: Device.get(1), rank: 1, worldSize: 2, timeout: 8000, defaultTimeout: 8000, signal: lost }
    expect(init).toHaveBeenCalledWith({ ...told, id: { bytes: new Uint8Array(128) } })
    expect([session.finalize, session.abandon, dispose].map((spy) => spy.mock.calls.length)).toEqual([1, 0, 1])
    await runAsPe(read('put'), groupOf([1]), nothing)
    expect(init.mock.lastCall?.[0]).not.toHaveProperty('signal')
  })

  test('that fail do not wait for the others', async () => {
    const { session } = made()
    const dispose = vi.spyOn(Stream.prototype, 'dispose')
    const fault = new Error('a fault')
    await expect(runAsPe(read('put'), groupOf([1]), () => Promise.reject(fault))).rejects.toBe(fault)
    expect([session.finalize, session.abandon, dispose].map((spy) => spy.mock.calls.length)).toEqual([0, 1, 1])
  })

  test.each([
    // Two messages and the 64 MiB that NVSHMEM uses fit in its default of 1 GiB.
    [480 * 2 ** 20, undefined],
    [480 * 2 ** 20 + 1, String(2 ** 30 + 2)],
  ])('have a heap for the largest message, here of %d bytes', async (most, size) => {
    made()
    vi.stubEnv('NVSHMEM_SYMMETRIC_SIZE', undefined)
    await runAsPe(read('put', '-e', String(most)), groupOf([0]), nothing)
    expect(process.env['NVSHMEM_SYMMETRIC_SIZE']).toBe(size)
    vi.stubEnv('NVSHMEM_SYMMETRIC_SIZE', '5')
    await runAsPe(read('put', '-e', String(most)), groupOf([0]), nothing)
    expect(process.env['NVSHMEM_SYMMETRIC_SIZE']).toBe('5')
  })

  test('describe the measured library, and leave the job', async () => {
    made()
    const { dispose } = job('shoal', { rank: 0, worldSize: 1, deviceOrdinal: 0 })
    const open = vi.spyOn(Output, 'open').mockRejectedValue(new Error('no output'))
    await expect(benchNvshmem(read('barrier'), [])).rejects.toThrow('no output')
    const library = { name: 'NVSHMEM', version: expect.stringMatching(/^\d+\.\d+/) }
    expect(open.mock.lastCall?.slice(1)).toEqual([library, read('barrier'), expect.any(Array)])
    expect(dispose).toHaveBeenCalledTimes(1)
  })
})
