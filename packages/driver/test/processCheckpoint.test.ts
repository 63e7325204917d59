import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { CudaVersion, DisposedError, FeatureNotSupportedError, StatusError } from '@shoal/types'
import { afterAll, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const {
  coreDumpSetting,
  entryPoint,
  logPosition,
  onLog,
  ProcessCheckpoint,
  profile,
  readLogs,
  setCoreDumpSetting,
  startProfiler,
  stopProfiler,
  writeLogs,
} = await import('@shoal/driver/diagnostics')
const { Library } = await import('@shoal/driver/library')
const { driver } = await import('@shoal/cuda-sys/driver')
const { injectError, TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const folder = mkdtempSync(join(scratchFolder(), 'diagnostics-'))
afterAll(() => device.dispose())

/** Makes the driver log that the word is not an instruction. */
function logSomething(word: string): void {
  const code = `.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry a() { ${word}; }`
  expect(() => Library.loadSync(device, code)).toThrow(StatusError)
}

describe('profile', () => {
  test('returns the result of the function, or rethrows its error', async () => {
    expect(profile(device, () => 5)).toBe(5)
    const error = new Error('of the program')
    const fail = (): never => {
      throw error
    }
    expect(() => profile(device.primaryContext, fail)).toThrow(error)
    const pending = profile(device, async () => 6)
    expect(pending).toBeInstanceOf(Promise)
    expect(await pending).toBe(6)
    await expect(profile(device, () => Promise.reject(error))).rejects.toBe(error)
    startProfiler(device)
    stopProfiler(device)
  })

  test('refuses wrong owners and functions, and a disposed context', () => {
    expect(() => profile(5 as never, () => 5)).toThrow(/^profile: /)
    expect(() => profile(device, 5 as never)).toThrow(/^profile: fn must be a function, not 5/)
    expect(() => startProfiler(null as never)).toThrow(/^startProfiler: /)
    expect(() => stopProfiler({} as never)).toThrow(/^stopProfiler: /)
    const gone = new TestDevice(1)
    const { primaryContext } = gone
    gone.dispose()
    expect(() => startProfiler(primaryContext)).toThrow(DisposedError)
  })
})

describe('core dumps', () => {
  test('have process-wide settings that contexts use until they get separate ones', () => {
    expect(coreDumpSetting('process', 'triggerHost')).toBe(true)
    expect(coreDumpSetting('process', 'enableOnException')).toBe(false)
    expect(coreDumpSetting(device, 'file')).toMatch(/^core\.cuda\./)
    expect(coreDumpSetting('process', 'generationFlags')).toBe(0)
    setCoreDumpSetting('process', 'generationFlags', 0b101)
    setCoreDumpSetting('process', 'lightweight', true)
    expect(coreDumpSetting(device, 'generationFlags')).toBe(5)
    setCoreDumpSetting(device, 'lightweight', false)
    expect(coreDumpSetting(device, 'lightweight')).toBe(false)
    expect(coreDumpSetting('process', 'lightweight')).toBe(true)
    setCoreDumpSetting('process', 'pipe', 'pípe')
    expect(coreDumpSetting('process', 'pipe')).toBe('pípe')
  })

  test('are written to the configured file after a fault', () => {
    const broken = new TestDevice(1)
    const file = join(folder, 'core')
    setCoreDumpSetting(broken, 'enableOnException', true)
    setCoreDumpSetting(broken.primaryContext, 'file', file)
    using library = Library.loadSync(
      broken,
      '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry stop() { trap; }',
    )
    const stop = (): void => {
      library.kernel('stop', []).launch({ grid: 1, block: 1 })
      expect(() => broken.primaryContext.synchronizeSync()).toThrow(StatusError)
    }
    stop()
    expect(readFileSync(file, 'utf8')).toContain('CUDA_ERROR_LAUNCH_FAILED on device 1')
    expect(readLogs().text).toContain('CUDA_ERROR_LAUNCH_FAILED on device 1')
    injectError(broken, 0)
    setCoreDumpSetting(broken, 'enableOnException', false)
    setCoreDumpSetting(broken, 'file', join(folder, 'none'))
    stop()
    expect(existsSync(join(folder, 'none'))).toBe(false)
    injectError(broken, 0)
    broken.dispose()
  })

  test('refuse unknown settings, values and scopes', () => {
    expect(() => coreDumpSetting('process', 'files' as never)).toThrow(/^coreDumpSetting: setting must be /)
    expect(() => coreDumpSetting('device' as never, 'file')).toThrow(
      /^coreDumpSetting: scope must be a device, a context or 'process', not 'device'/,
    )
    expect(() => coreDumpSetting(5 as never, 'file')).toThrow(/^coreDumpSetting: scope must be /)
    expect(() => setCoreDumpSetting(5 as never, 'file', 'a')).toThrow(/^setCoreDumpSetting: scope must be /)
    expect(() => setCoreDumpSetting('process', 'lightweight', 1 as never)).toThrow(
      /^setCoreDumpSetting: value must be /,
    )
    expect(() => setCoreDumpSetting('process', 'generationFlags', -1)).toThrow(RangeError)
    expect(() => setCoreDumpSetting('process', 'generationFlags', Number.NaN)).toThrow(TypeError)
    expect(() => setCoreDumpSetting('process', 'file', 5 as never)).toThrow(TypeError)
    expect(() => setCoreDumpSetting('process', 'file', 'é'.repeat(512))).toThrow(
      /^setCoreDumpSetting: value must be of at most 1023 bytes/,
    )
    setCoreDumpSetting('process', 'file', 'a'.repeat(1023))
    expect(coreDumpSetting('process', 'file')).toHaveLength(1023)
    expect(() => setCoreDumpSetting(device, 'pipe', 'a')).toThrow(StatusError)
  })
})

describe('driver logs', () => {
  test('are read completely or from a position', () => {
    const start = logPosition()
    logSomething('alpha')
    const first = readLogs({ since: start })
    expect(first.text).toMatch(/^\[[\d:.]+\]\[\d+\]\[CUDA\]\[E\] .*unknown instruction 'alpha'\n$/)
    expect(first.position).toBe(logPosition())
    logSomething('beta')
    expect(readLogs({ since: first.position }).text).not.toContain('alpha')
    expect(readLogs({ since: first.position }).text).toContain('beta')
    expect(readLogs({ since: logPosition() }).text).toBe('')
    const all = readLogs()
    expect(all.text).toMatch(/alpha[\s\S]*beta/)
    expect(all.position).toBe(logPosition())
  })

  test('can be written to a file', () => {
    const since = logPosition()
    const file = join(folder, 'log')
    logSomething('gamma')
    expect(writeLogs(file, { since })).toBe(logPosition())
    expect(readFileSync(file, 'utf8')).toMatch(/gamma/)
    expect(readFileSync(file, 'utf8')).not.toMatch(/beta/)
    expect(writeLogs(file)).toBe(logPosition())
    expect(readFileSync(file, 'utf8')).toMatch(/gamma[\s\S]*beta[\s\S]*gamma/)
    expect(() => writeLogs(join(folder, 'no', 'log'))).toThrow(StatusError)
  })

  test('reach a listener until it is disposed', async () => {
    const heard: string[] = []
    const listening = onLog((lines) => heard.push(lines))
    logSomething('delta')
    logSomething('epsilon')
    while (!heard.join('').includes('epsilon')) await after(1)
    expect(heard.join('')).toMatch(/delta[\s\S]*epsilon/)
    expect(heard.join('').match(/delta/g)).toHaveLength(1)
    listening[Symbol.dispose]()
    listening[Symbol.dispose]()
    logSomething('zeta')
    await after(20)
    expect(heard.join('')).not.toContain('zeta')
  })

  test('refuse wrong positions, paths and functions', () => {
    for (const since of [-1, 1.5, Number.NaN, 2 ** 32, '0']) {
      expect(() => readLogs({ since: since as never })).toThrow(
        /^readLogs: since must be an integer from 0 to 4294967295/,
      )
      expect(() => writeLogs('a', { since: since as never })).toThrow(/^writeLogs: since must be /)
    }
    expect(() => readLogs({ from: 1 } as never)).toThrow(/^readLogs: options must have only the keys since, not 'from'/)
    expect(() => writeLogs(5 as never)).toThrow(/^writeLogs: path must be /)
    expect(() => onLog(5 as never)).toThrow(/^onLog: fn must be a function/)
  })
})

describe('entryPoint', () => {
  test('returns the function of a given version by name', () => {
    const found = entryPoint('cuMemAlloc')
    expect(found).toEqual({ result: 'found', address: driver.rawSymbol('cuMemAlloc_v2') })
    expect(entryPoint('cuMemAlloc', { version: CudaVersion.of(12, 0) })).toEqual(found)
    expect(entryPoint('cuLibraryLoadData', { version: CudaVersion.of(11, 8) })).toEqual({
      result: 'versionTooOld',
      address: undefined,
    })
    expect(entryPoint('cuNothing')).toEqual({ result: 'notFound', address: undefined })
  })

  test('distinguishes the default stream modes', () => {
    const [legacy, perThread] = (['legacy', 'per-thread'] as const).map((mode) => entryPoint('cuStreamQuery', { mode }))
    expect(legacy).toEqual({ result: 'found', address: driver.rawSymbol('cuStreamQuery') })
    expect(perThread).toEqual({ result: 'found', address: driver.rawSymbol('cuStreamQuery_ptsz') })
    expect(entryPoint('cuStreamQuery')).toEqual(legacy)
  })

  test('refuses wrong names, versions and modes', () => {
    expect(() => entryPoint(5 as never)).toThrow(/^entryPoint: name must be /)
    expect(() => entryPoint('')).toThrow(RangeError)
    expect(() => entryPoint('cuInit', { version: 12000 as never })).toThrow(
      /^entryPoint: version must be a CudaVersion/,
    )
    expect(() => entryPoint('cuInit', { mode: 'default' as never })).toThrow(/^entryPoint: mode must be /)
    expect(() => entryPoint('cuInit', { version: CudaVersion.of(99) })).toThrow(StatusError)
    expect(() => entryPoint('cuInit', { since: 1 } as never)).toThrow(/^entryPoint: options must have only the keys /)
  })
})

describe('ProcessCheckpoint', () => {
  test('throws CUDA_ERROR_NOT_SUPPORTED on the software device', async () => {
    const checkpoint = new ProcessCheckpoint(process.pid)
    const unsupported = expect.objectContaining({ code: 'CUDA_ERROR_NOT_SUPPORTED' })
    expect(() => checkpoint.state).toThrow(unsupported)
    expect(() => checkpoint.restoreThreadId).toThrow(unsupported)
    await expect(checkpoint.lock({ timeout: 10 })).rejects.toThrow(unsupported)
    await expect(checkpoint.save()).rejects.toThrow(unsupported)
    const uuid = new Uint8Array(16)
    await expect(checkpoint.restore({ devices: [{ from: uuid, to: uuid }] })).rejects.toThrow(unsupported)
    await expect(checkpoint.restore()).rejects.toThrow(unsupported)
    await expect(checkpoint.unlock()).rejects.toThrow(unsupported)
    expect(FeatureNotSupportedError).toBeTypeOf('function')
  })

  test('refuses wrong process ids, limits and devices', async () => {
    for (const pid of [0, -1, 1.5, '1', undefined, 2 ** 31]) {
      expect(() => new ProcessCheckpoint(pid as never)).toThrow(/^new ProcessCheckpoint: pid must be /)
    }
    const checkpoint = new ProcessCheckpoint(1)
    await expect(checkpoint.lock({ timeout: -1 })).rejects.toThrow(/^ProcessCheckpoint.lock: timeout must be /)
    await expect(checkpoint.lock({ limit: 1 } as never)).rejects.toThrow(/^ProcessCheckpoint.lock: options must have /)
    await expect(checkpoint.restore({ devices: 5 as never })).rejects.toThrow(
      /^ProcessCheckpoint.restore: devices must be /,
    )
    const short = { from: new Uint8Array(15), to: new Uint8Array(16) }
    await expect(checkpoint.restore({ devices: [short] })).rejects.toThrow(
      /^ProcessCheckpoint.restore: devices\[0\].from must be a Uint8Array of 16 bytes/,
    )
  })
})
