import type { Spec } from '../spec.js'
import { type ApiNames, driver, runtime, zero } from './apiNames.js'
import { withDevice, withRuntimeDevice } from './start.js'
import { address, type GroupBuilder, handle, integer, member, out, use } from './steps.js'

export function driverPools(spec: Spec): GroupBuilder {
  return pools(withDevice(spec, 'driver-pools'), driver)
}

export function runtimePools(spec: Spec): GroupBuilder {
  return pools(withRuntimeDevice(spec, 'runtime-pools'), runtime)
}

function pools(group: GroupBuilder, apiNames: ApiNames): GroupBuilder {
  const { api, device, pool: type, location } = apiNames
  const pinned = member(...apiNames.pinned)
  const onDevice = member(...apiNames.onDevice)
  group
    .ask(api('DeviceGetDefaultMemPool'), handle(type, 'default'), device)
    .ask(api('DeviceGetMemPool'), handle(type, 'current'), device)
    .memory('place', location, { type: onDevice, id: zero })
    .memory('host', location, { type: member(...apiNames.onHost) })
    .ask(api('MemGetDefaultMemPool'), handle(type), address('place'), pinned)
    .ask(api('MemGetMemPool'), handle(type), address('place'), pinned)
    .memory('props', apiNames.poolProps, {
      allocType: pinned,
      'location.type': onDevice,
      'location.id': zero,
      maxSize: integer(2 ** 26),
    })
    .setUp(api('MemPoolCreate'), handle(type, 'own'), address('props'))
  for (const pool of ['default', 'current', 'own']) {
    group.each(apiNames.poolAttribute, (attribute) =>
      group.ask(api('MemPoolGetAttribute'), use(pool), attribute, out(apiNames.word)),
    )
    for (const place of ['place', 'host'])
      group.ask(api('MemPoolGetAccess'), out(apiNames.accessFlags), use(pool), address(place))
  }
  return group.setUp(api('MemPoolDestroy'), use('own'))
}
