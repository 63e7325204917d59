import { execFileSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StatusError } from '@shoal/types'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

const platform = `${process.platform}-${process.arch}`
const library = fileURLToPath(new URL(`../../sim/prebuilds/${platform}/libshoal-sim-cudart.so.13`, import.meta.url))
const source = fileURLToPath(new URL('native/refusingShim.c', import.meta.url))
const shim = join(scratchFolder(), 'refusingShim.so')
const flags = ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Wl,--no-as-needed', `-Wl,-rpath,${dirname(library)}`]
execFileSync(process.env['CC'] ?? 'cc', [...flags, '-o', shim, source, library])

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_CUDART_LIBRARY: shim })
const { currentDevice, DeviceBuffer, initialize, runtimeVersion } = await import('@shoal/runtime')

test.each([
  ['initialize', 'cudaRuntimeGetVersion', () => initialize()],
  ['runtimeVersion', 'cudaRuntimeGetVersion', () => runtimeVersion()],
  ['an object', 'cudaRuntimeGetVersion', () => DeviceBuffer.zeros('f32', 1)],
  ['currentDevice', /^cuda(RuntimeGetVersion|GetDevice)$/, () => currentDevice()],
])('%s: the error of libcudart is thrown', (_, api, use) => {
  let thrown: unknown
  try {
    use()
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(StatusError)
  expect(thrown).toMatchObject({ status: 101, code: 'cudaErrorInvalidDevice', library: 'CUDA runtime' })
  expect((thrown as StatusError).api).toMatch(api)
})
