import { CUdevResource, cuDeviceGetDevResource } from '@shoal/cuda-sys/driver'
import type { Device } from '@shoal/driver'
import { DeviceResource, GreenContext } from '@shoal/driver/context'
import { attempt, type Value, written } from '../answer.js'
import type { SplitCase, SplitStep } from '../cases.js'

export function splitAnswer(device: Device, { steps, green, kinds }: SplitCase): Value {
  const all = DeviceResource.of(device)
  const { multiprocessors, minimumPartition, alignment } = all
  const found: Record<string, Value> = {
    multiprocessors,
    minimumPartition,
    alignment,
    split: splitOf(all, steps, green),
  }
  // The packages have a class only for multiprocessors, so this calls the raw package.
  for (const kind of kinds)
    found[`kind ${kind}`] = attempt(() => {
      const bytes = written(CUdevResource.size, (out) => cuDeviceGetDevResource(device.handle, out, kind as never))
      return new DataView(bytes.buffer).getInt32(0, true)
    })
  return found
}

function splitOf(whole: DeviceResource, [step, ...next]: readonly SplitStep[], green: boolean): Value {
  return attempt(() => {
    const { multiprocessors, ...options } = step as SplitStep
    const { groups, remaining } = whole.split(multiprocessors, options)
    const [first, second] = groups
    return {
      groups: groups.map((group) => group.multiprocessors),
      remaining: remaining?.multiprocessors ?? 0,
      ...(green && first && { green: greenOf([first], next) }),
      ...(green && first && second && { greenOfTwo: greenOf([first, second], next) }),
      ...(first && next.length > 0 && { again: splitOf(first, next, green) }),
    }
  })
}

function greenOf(parts: readonly DeviceResource[], next: readonly SplitStep[]): Value {
  return attempt(() => {
    using green = GreenContext.create(parts)
    const { resource } = green
    return {
      multiprocessors: resource.multiprocessors,
      ...(next.length > 0 && { split: splitOf(resource, next, true) }),
    }
  })
}
