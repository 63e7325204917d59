import type { Spec } from '../spec.js'
import { unknownCodes } from './start.js'
import { GroupBuilder, integer, out } from './steps.js'

export function driverErrors(spec: Spec): GroupBuilder {
  const group = new GroupBuilder(spec, 'driver-errors', { devices: 0 })
  for (const name of ['cuGetErrorName', 'cuGetErrorString']) {
    const answer = out('const char *', { follow: 'text' })
    group.each('CUresult', (code) => group.ask(name, code, answer))
    for (const code of unknownCodes) group.ask(name, integer(code), answer)
  }
  return group.ask('cuDriverGetVersion', out('int'))
}

export function runtimeErrors(spec: Spec): GroupBuilder {
  const group = new GroupBuilder(spec, 'runtime-errors', { devices: 0 })
  for (const name of ['cudaGetErrorName', 'cudaGetErrorString']) {
    group.each('cudaError', (code) => group.ask(name, code))
    for (const code of unknownCodes) group.ask(name, integer(code))
  }
  group.ask('cudaRuntimeGetVersion', out('int')).ask('cudaDriverGetVersion', out('int'))
  group.each('cudaChannelFormatKind', (format) =>
    group.ask('cudaCreateChannelDesc', integer(8), integer(16), integer(32), integer(5), format),
  )
  return group.ask('cudaGetDeviceCount', out('int')).ask('cudaPeekAtLastError').ask('cudaGetLastError')
}
