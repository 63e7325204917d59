import { Device, DeviceBuffer, ShoalError } from '@shoal/driver'
import { Library, Linker } from '@shoal/driver/library'
import { functionFor, kernel, type Operation, operations } from './code.js'

const length = 1000

process.exitCode = await main(process.argv[2] ?? 'square', Number(process.argv[3] ?? '0.5'))

async function main(operation: string, summand: number): Promise<number> {
  if (!Object.hasOwn(operations, operation) || Number.isNaN(summand)) {
    console.error(`linked-kernels: give one of ${Object.keys(operations).join(', ')} and a number`)
    return 2
  }
  try {
    return await run(Device.all(), operation as Operation, summand)
  } catch (error) {
    if (!(error instanceof ShoalError)) throw error
    console.error(`linked-kernels: ${error.message}`)
    return 2
  }
}

async function run(devices: readonly Device[], operation: Operation, summand: number): Promise<number> {
  const [first] = devices
  if (first === undefined) {
    console.error('linked-kernels: there is no device')
    return 2
  }
  console.log(`${devices.length} × ${first.name}${first.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'}`)
  using linker = Linker.create(first)
  linker.add(kernel, { name: 'map' }).add(functionFor(operation, summand), { name: operation })
  using library = await Library.load(first, await linker.complete())
  const { text, compute } = operations[operation]
  const names = library.kernelNames
  console.log(`linked ${names.join(', ')} (${names.length} kernel) with apply(x) = ${text} + ${summand}`)

  const values = Float32Array.from({ length }, (_, index) => index / 8)
  const expected = values.map((value) => Math.fround(Math.fround(compute(value)) + Math.fround(summand)))
  let isRight = true
  for (const device of devices) {
    using stream = device.createStream({ nonBlocking: true })
    using data = DeviceBuffer.from(device, values)
    const map = library.on(device).kernel('map', ['ptr', 'u32'])
    map.launch({ grid: Math.ceil(length / 256), block: 256, stream }, data, length)
    await stream.synchronize()
    const result = await data.toArray()
    const right = result.filter((value, index) => value === expected[index]).length
    console.log(`device ${device.ordinal}: ${right} elements are right`)
    isRight &&= right === length
  }
  return isRight ? 0 : 1
}
