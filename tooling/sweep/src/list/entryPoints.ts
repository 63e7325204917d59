import type { Spec } from '../spec.js'
import { zero } from './apiNames.js'
import { withRuntimeDevice } from './start.js'
import { GroupBuilder, integer, out, presence, text } from './steps.js'

export function driverEntryPoints(spec: Spec): GroupBuilder {
  const group = new GroupBuilder(spec, 'driver-entry-points').setUp('cuInit', zero)
  const names = ['cuMemAlloc', 'cuGetProcAddress', 'cuStreamGetCtx', 'cuLaunchKernelEx', 'cuNoSuchFunction']
  for (const name of names)
    for (const version of [2000, 3020, 11000, 12050, 13000, 99000])
      for (const flags of [0, 1, 2])
        group.ask(
          'cuGetProcAddress',
          text(name),
          out('void *', { compare: presence('an address of this process') }),
          integer(version),
          integer(flags),
          out('CUdriverProcAddressQueryResult'),
        )
  return group
}

export function runtimeEntryPoints(spec: Spec): GroupBuilder {
  const group = withRuntimeDevice(spec, 'runtime-entry-points')
  for (const name of ['cuMemAlloc', 'cuGetProcAddress', 'cuNoSuchFunction']) {
    for (const version of [3020, 12050, 13000])
      group.ask(
        'cudaGetDriverEntryPointByVersion',
        text(name),
        out('void *', { compare: presence('an address of this process') }),
        integer(version),
        zero,
        out('cudaDriverEntryPointQueryResult'),
      )
    group.ask(
      'cudaGetDriverEntryPoint',
      text(name),
      out('void *', { compare: presence('an address of this process') }),
      zero,
      out('cudaDriverEntryPointQueryResult'),
    )
  }
  return group
}
