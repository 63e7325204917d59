import { Device, DeviceBuffer, Module, ShoalError, type Stream } from '@shoal/driver'
import { DeviceResource, GreenContext } from '@shoal/driver/context'
import { ptx } from './kernel.js'

const longNanoseconds = 300_000_000n

process.exitCode = await main()

async function main(): Promise<number> {
  try {
    if (Device.count === 0) throw new RangeError('there is no device')
    return await run(Device.get(0))
  } catch (error) {
    if (!(error instanceof ShoalError || error instanceof RangeError)) throw error
    console.error(`partitioned-gpu: ${error.message}`)
    return 2
  }
}

async function run(device: Device): Promise<number> {
  const all = DeviceResource.of(device)
  const { groups, remaining } = all.split(Math.ceil(all.multiprocessors / 8), { groups: 1 })
  if (remaining === undefined) throw new RangeError('the device is too small to be shared out')
  using urgent = GreenContext.create(groups)
  using rest = GreenContext.create(remaining)
  const kind = device.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'
  const [few, many] = [urgent.resource.multiprocessors, rest.resource.multiprocessors]
  console.log(
    `${device.name}${kind}, ${all.multiprocessors} multiprocessors: ${few} for what is urgent, ${many} for the rest`,
  )

  using module = await Module.load(device, ptx)
  const kernel = module.kernel('whereabouts', ['ptr', 'u64'])
  using quick = urgent.createStream({ priority: device.streamPriorityRange.greatest })
  using slow = rest.createStream()
  using shortPlaces = DeviceBuffer.zeros(device, 'u32', few * 2)
  using longPlaces = DeviceBuffer.zeros(device, 'u32', many)
  launch(slow, longPlaces, longNanoseconds)
  launch(quick, shortPlaces, 0n)
  await quick.synchronize()
  const isBeside = !slow.query()
  const [quickly, slowly] = [await places(shortPlaces, quick), await places(longPlaces, slow)]
  const common = [...quickly].filter((place) => slowly.has(place))
  const shared = common.length === 0 ? 'none in common' : `WRONG, in common: ${common}`
  console.log(`the urgent kernel ran on ${quickly.size} multiprocessors, the long one on ${slowly.size}: ${shared}`)
  console.log(`the urgent kernel ended ${isBeside ? 'while the long one still ran' : 'after the long one'}`)
  return common.length === 0 ? 0 : 1

  function launch(stream: Stream, out: DeviceBuffer<'u32'>, nanoseconds: bigint): void {
    kernel.launch({ grid: out.length, block: 32, stream }, out, nanoseconds)
  }
}

async function places(out: DeviceBuffer<'u32'>, stream: Stream): Promise<Set<number>> {
  return new Set(await out.toArray({ stream }))
}
