import { type Device, DeviceBuffer } from '@shoal/driver'
import { TensorMap } from '@shoal/driver/texture'
import { attempt, hex, type Value } from '../answer.js'
import type { TensorMapCase } from '../cases.js'

/** As long as any map of the list needs. The memory is never read. */
const mostBytes = 2 ** 52

export function tensorMapAnswer(device: Device, { kind, address, replaced, options }: TensorMapCase): Value {
  const at = (place: string): DeviceBuffer<'u8'> => DeviceBuffer.fromAddress(device, BigInt(place), 'u8', mostBytes)
  const map = TensorMap[kind](at(address), options as never)
  const bytes = hex(map.bytes)
  return { map: bytes, replaced: attempt(() => hex(map.replaceAddress(at(replaced)).bytes)) }
}
