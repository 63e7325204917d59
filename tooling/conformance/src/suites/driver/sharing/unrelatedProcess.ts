// One of two processes that share only the path of a socket, for a case in exchange.ts:
// node unrelatedProcess.js serve|connect PATH SEED
import {
  AddressRange,
  allocationGranularity,
  DescriptorServer,
  DescriptorSocket,
  Device,
  DeviceBuffer,
  PhysicalMemory,
  receiveHandle,
  sendHandle,
} from '@shoal/driver'
import { assertSameBits } from '../../../support/compare.js'
import { Random } from '../../../support/random.js'

const [role, path = '', seed = '0'] = process.argv.slice(2)
const device = Device.get(0)
const question = (length: number): Uint8Array => new Random(Number(seed)).bytes(length)
const answer = (length: number): Uint8Array => new Random(Number(seed) + 1).bytes(length)
const waiting = { timeout: 30_000 }

function map(physical: PhysicalMemory): DeviceBuffer<'u8'> {
  return DeviceBuffer.view(device, AddressRange.reserve(physical.byteLength).map(physical), 'u8')
}

async function serve(): Promise<void> {
  using server = DescriptorServer.listen(path)
  console.log('listening')
  const physical = PhysicalMemory.create(device, allocationGranularity(device) * 3, { handleTypes: 'posix-fd' })
  const bytes = map(physical)
  bytes.copyFromSync(question(bytes.length))
  using socket = await server.accept(waiting)
  using handle = physical.export()
  await sendHandle(socket, handle)
  await socket.receive(waiting)
  assertSameBits(bytes.toArraySync(), answer(bytes.length), 'what the other wrote')
}

async function connect(): Promise<void> {
  using socket = DescriptorSocket.connect(path)
  using handle = await receiveHandle(socket, 'memory', waiting)
  const bytes = map(PhysicalMemory.import(device, handle))
  assertSameBits(bytes.toArraySync(), question(bytes.length), 'what the other wrote')
  bytes.copyFromSync(answer(bytes.length))
  await socket.send({}, waiting)
}

await (role === 'serve' ? serve() : connect())
// Nothing is disposed of here, because the system must free everything when the process ends.
