import type { Spec } from '../spec.js'
import { type ApiNames, driver, runtime } from './apiNames.js'
import { withDevice, withRuntimeDevice } from './start.js'
import { type Argument, type GroupBuilder, integer, out, use, type Value } from './steps.js'

export function driverPeers(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'driver-peers', { devices: 2 })
  return peers(group.setUp('cuDeviceGet', out('CUdevice', { save: 'peer' }), integer(1)), driver, use('peer'))
}

export function runtimePeers(spec: Spec): GroupBuilder {
  return peers(withRuntimeDevice(spec, 'runtime-peers', { devices: 2 }), runtime, integer(1))
}

function peers(group: GroupBuilder, apiNames: ApiNames, peer: Value): GroupBuilder {
  const { api, device } = apiNames
  for (const [from, to] of [
    [device, peer],
    [peer, device],
  ] as const) {
    group.ask(api('DeviceCanAccessPeer'), out('int'), from, to)
    group.each(apiNames.peerAttribute, (attribute) =>
      group.ask(api('DeviceGetP2PAttribute'), out('int'), attribute, from, to),
    )
    group.ask(api('DeviceGetP2PAtomicCapabilities'), ...everyAtomic(group.spec, apiNames), from, to)
  }
  return group
}

export function hostAtomics(group: GroupBuilder, apiNames: ApiNames): GroupBuilder {
  return group.ask(
    apiNames.api('DeviceGetHostAtomicCapabilities'),
    ...everyAtomic(group.spec, apiNames),
    apiNames.device,
  )
}

/** The arguments: an answer for each atomic operation, the operations, and their number. */
function everyAtomic(spec: Spec, { atomicOperation }: ApiNames): Argument[] {
  const names = spec.members(atomicOperation)
  return [
    out('unsigned int', { count: names.length }),
    { kind: 'members', enumeration: atomicOperation, names },
    integer(names.length),
  ]
}
