// Exports memory of device 0 and prints the handle. Ends when its standard input ends.
import { Device, DeviceBuffer, ipcMemoryHandle } from '@shoal/driver'

const buffer = DeviceBuffer.zeros(Device.get(0), 'u8', 1024)
console.log(JSON.stringify(ipcMemoryHandle(buffer)))
process.stdin.resume()
process.stdin.once('end', () => process.exit())
