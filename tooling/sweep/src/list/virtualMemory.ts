import type { Spec } from '../spec.js'
import { zero } from './apiNames.js'
import { pointerOut } from './pointers.js'
import { withContext, withDevice } from './start.js'
import { address, type GroupBuilder, handle, integer, member, offset, out, use } from './steps.js'
export function driverVirtualMemory(spec: Spec): GroupBuilder {
  const group = withContext(spec, 'driver-virtual-memory')
  const bytes = integer(2 ** 21)
  const onDevice = member('CUmemLocationType', 'CU_MEM_LOCATION_TYPE_DEVICE')
  group
    .memory('prop', 'CUmemAllocationProp', {
      type: member('CUmemAllocationType', 'CU_MEM_ALLOCATION_TYPE_PINNED'),
      'location.type': onDevice,
      'location.id': zero,
    })
    .memory('access', 'CUmemAccessDesc', {
      'location.type': onDevice,
      'location.id': zero,
      flags: member('CUmemAccess_flags', 'CU_MEM_ACCESS_FLAGS_PROT_READWRITE'),
    })
    .memory('place', 'CUmemLocation', { type: onDevice, id: zero })
    .setUp('cuMemAddressReserve', handle('CUdeviceptr', 'range'), bytes, zero, zero, zero)
    .setUp('cuMemCreate', handle('CUmemGenericAllocationHandle', 'allocation'), bytes, address('prop'), zero)
    .setUp('cuMemMap', use('range'), bytes, zero, use('allocation'), zero)
    .ask('cuMemGetAccess', out('unsigned long long'), address('place'), use('range'))
    .setUp('cuMemSetAccess', use('range'), bytes, address('access'), integer(1))
    .ask('cuMemGetAccess', out('unsigned long long'), address('place'), use('range'))
    .ask('cuMemGetAllocationPropertiesFromHandle', out('CUmemAllocationProp'), use('allocation'))
    .ask('cuMemGetAddressRange', out('CUdeviceptr', { compare: offset('range') }), out('size_t'), use('range', 4096))
  group.each('CUpointer_attribute', (attribute, which) =>
    group.ask('cuPointerGetAttribute', pointerOut(which, 'range'), attribute, use('range', 4096)),
  )
  return group
    .setUp('cuMemUnmap', use('range'), bytes)
    .setUp('cuMemRelease', use('allocation'))
    .setUp('cuMemAddressFree', use('range'), bytes)
}

export function driverGranularity(spec: Spec): GroupBuilder {
  const group = withDevice(spec, 'driver-granularity')
  const plain = spec.members('CUmemAllocationHandleType').filter((name) => !name.endsWith('_MAX'))
  let number = 0
  group.each('CUmemLocationType', (location, where) => {
    if (where.endsWith('_MAX')) return
    for (const name of plain) {
      const prop = `prop${number++}`
      group.memory(prop, 'CUmemAllocationProp', {
        type: member('CUmemAllocationType', 'CU_MEM_ALLOCATION_TYPE_PINNED'),
        requestedHandleTypes: member('CUmemAllocationHandleType', name),
        'location.type': location,
        'location.id': zero,
      })
      group.each('CUmemAllocationGranularity_flags', (flag) =>
        group.ask('cuMemGetAllocationGranularity', out('size_t'), address(prop), flag),
      )
    }
  })
  // Only asked: multicast objects are never made.
  for (const devices of [1, 2]) {
    const prop = `multicast${devices}`
    group.memory(prop, 'CUmulticastObjectProp', { numDevices: integer(devices), size: integer(2 ** 21) })
    group.each('CUmulticastGranularity_flags', (flag) =>
      group.ask('cuMulticastGetGranularity', out('size_t'), address(prop), flag),
    )
  }
  return group
}
