import { Device } from '@shoal/driver'
import { AbortedError, ShoalError } from '@shoal/types'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { benchCommand } from '../src/bench/command.js'

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

describe('the bench command', () => {
  class Fault extends ShoalError {
    readonly code = 'SHOAL_FAULT'
  }

  /** Runs a benchmark whose first step fails. */
  async function failWith(fault: unknown, ...words: string[]) {
    vi.spyOn(Device, 'all').mockImplementation(() => {
      throw fault
    })
    const print = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const end = await benchCommand.run(words).catch((error: unknown) => error)
    return { end, told: print.mock.calls.flat() }
  }

  test.each([
    [new Fault('no library'), 'no library'],
    [new AbortedError({ cause: new Fault('rank 3 is lost') }), 'rank 3 is lost'],
    [new Fault('outer', { cause: new Fault('inner') }), 'outer'],
  ])('reports %s in one line', async (fault, words) => {
    expect(await failWith(fault, 'calls')).toEqual({ end: 1, told: [`shoal bench: ${words}`] })
  })

  test('reports a wait that was aborted for another reason', async () => {
    const { end, told } = await failWith(new AbortedError({ cause: new Error('enough') }), 'calls')
    expect([end, told]).toEqual([
      1,
      [expect.stringMatching(/^shoal bench: The wait was aborted by its signal.*enough/)],
    ])
  })

  test('rethrows errors that are not from Shoal', async () => {
    const fault = new TypeError('a fault')
    expect(await failWith(fault, 'calls')).toEqual({ end: fault, told: [] })
  })

  test.each([
    [['--device', 'sim'], undefined, undefined, 'sim', undefined],
    [['--device', 'sim', '-g', '3'], undefined, undefined, 'sim', '3'],
    [['--device', 'sim', '-g', '1'], undefined, undefined, 'sim', '2'],
    [['--device', 'sim', '-g', '3'], undefined, '8', 'sim', '8'],
    [['-g', '3'], 'sim', undefined, 'sim', '3'],
    [['-g', '3'], undefined, undefined, undefined, undefined],
    [['--device', 'gpu', '-g', '3'], 'sim', undefined, undefined, undefined],
    [['--device', 'gpu'], 'other', undefined, 'other', undefined],
  ])('%j, with SHOAL_DEVICE=%s and SHOAL_SIM_DEVICES=%s', async (words, device, devices, ...expected) => {
    vi.stubEnv('SHOAL_DEVICE', device)
    vi.stubEnv('SHOAL_SIM_DEVICES', devices)
    await failWith(new Fault(''), 'all-reduce', ...words)
    expect([process.env['SHOAL_DEVICE'], process.env['SHOAL_SIM_DEVICES']]).toEqual(expected)
  })
})
