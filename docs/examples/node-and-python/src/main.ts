// Node is rank 0 on device 0, Python rank 1 on device 1; together they all-reduce. PYTHON names another interpreter
// than python3.
import { Device, DeviceBuffer, probe, ShoalError } from '@shoal/driver'
import { Communicator, UniqueId } from '@shoal/nccl'
import { countWrong, dataOf } from './data.js'
import { PythonRank } from './pythonRank.js'

const elements = 1_000_003
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 1000))

async function main(): Promise<number> {
  const [device, second] = Device.all()
  if (device === undefined || second === undefined) {
    throw new Error('this example needs two devices: NCCL refuses two ranks on one')
  }
  console.log(`${device.name}${device.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'}, seed ${seed}`)
  const id = UniqueId.create()
  // Both ranks have to use the same NCCL, and Python the driver that is used here.
  const libraryOf = (wanted: string): string => probe().find((library) => library.id === wanted)?.path ?? ''
  const python = PythonRank.start({ id, elements, seed, cuda: libraryOf('cuda'), nccl: libraryOf('nccl') })
  const communicator = await Communicator.initRank({ device, rank: 0, worldSize: 2, id, signal: python.gone })
  using stream = device.createStream()
  using buffer = DeviceBuffer.from(device, dataOf(0, elements, seed))
  communicator.allReduce(buffer, buffer, { op: 'sum', stream })
  const result = await buffer.toArray({ stream })
  const wrong = countWrong(result, seed)
  console.log(`Node, rank 0: ${elements} elements, ${wrong} wrong`)
  await communicator.destroy()
  return (await python.end) === 0 && wrong === 0 ? 0 : 1
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof ShoalError) && (error as Error).constructor !== Error) throw error
  const { message, cause } = error as Error
  console.error(`node-and-python: ${cause instanceof Error ? cause.message : message}`)
  process.exitCode = 2
}
