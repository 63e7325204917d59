import type { Spec } from '../spec.js'
import { type Dialect, driver, runtime } from './dialect.js'
import { withDevice, withRuntimeDevice } from './start.js'
import { type Argument, type GroupBuilder, integer, out, use, type Value } from './steps.js'

export function driverPeers(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'driver-peers', { devices: 2 })
  return peers(group.setUp('cuDeviceGet', out('CUdevice', { save: 'peer' }), integer(1)), driver, use('peer'))
}

export function runtimePeers(spec: Spec): GroupBuilder {
  return peers(withRuntimeDevice(spec, 'runtime-peers', { devices: 2 }), runtime, integer(1))
}

function peers(group: GroupBuilder, dialect: Dialect, peer: Value): GroupBuilder {
  const { api, device } = dialect
  for (const [from, to] of [
    [device, peer],
    [peer, device],
  ] as const) {
    group.ask(api('DeviceCanAccessPeer'), out('int'), from, to)
    group.each(dialect.peerAttribute, (attribute) =>
      group.ask(api('DeviceGetP2PAttribute'), out('int'), attribute, from, to),
    )
    group.ask(api('DeviceGetP2PAtomicCapabilities'), ...everyAtomic(group.spec, dialect), from, to)
  }
  return group
}

export function hostAtomics(group: GroupBuilder, dialect: Dialect): GroupBuilder {
  return group.ask(dialect.api('DeviceGetHostAtomicCapabilities'), ...everyAtomic(group.spec, dialect), dialect.device)
}

/** What is given for each atomic operation, the operations, and how many there are. */
function everyAtomic(spec: Spec, { atomicOperation }: Dialect): Argument[] {
  const names = spec.members(atomicOperation)
  return [
    out('unsigned int', { count: names.length }),
    { kind: 'members', enumeration: atomicOperation, names },
    integer(names.length),
  ]
}
