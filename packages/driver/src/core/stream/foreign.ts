import type { Context } from '../context/context.js'
import type { EventLike } from '../context/eventLike.js'

export function refuseForeignEvent({ context }: EventLike, own: Context): never {
  throw new TypeError(
    `Stream.record: event must be one of device ${own.device.ordinal}, not of ${whereIs(context.device.ordinal, own)}`,
  )
}

function whereIs(deviceOrdinal: number, context: Context): string {
  return deviceOrdinal === context.device.ordinal ? 'another context of that device' : `device ${deviceOrdinal}`
}

export function refuseForeignStream(deviceOrdinal: number, context: Context, api: string): never {
  const { ordinal } = context.device
  throw new TypeError(`${api}: stream must be one of device ${ordinal}, not of ${whereIs(deviceOrdinal, context)}`)
}
