/** A peer that is killed after it has sent part of a message: `dyingPeer.js PATH BYTES`. BYTES is base64. */
import { DescriptorServer } from '@shoal/driver'
import { sendRaw } from './rawSocket.js'

const [path = '', bytes = ''] = process.argv.slice(2)
const server = DescriptorServer.listen(`\0${path}`)
process.send?.('ready')
const socket = await server.accept()
const part = Buffer.from(bytes, 'base64')
if (part.length > 0) sendRaw(socket.descriptor, part, [])
process.kill(process.pid, 'SIGKILL')
