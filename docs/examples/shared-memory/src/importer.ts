import { type DescriptorSocket, Device, receiveHandle } from '@shoal/driver'
import { hear, say } from './messages.js'
import { answer, question, SharedArray } from './sharedArray.js'

/** Where an importer stops, for those who want to see what happens when it or the owner is killed. */
export interface ImporterOptions {
  /** Wait for ever once the memory is mapped. */
  readonly pause: boolean
  /** Stay until the owner is gone, and look at the memory again. */
  readonly stay: boolean
}

/** Receives memory from the other process, reads its contents, and writes the answer. */
export async function runImporter(socket: DescriptorSocket, { pause, stay }: ImporterOptions): Promise<void> {
  using handle = await receiveHandle(socket, 'memory', { timeout: 10_000 })
  using shared = SharedArray.open(Device.get(0), handle)
  console.log(`importer ${process.pid}: mapped ${handle.byteLength} bytes at 0x${shared.buffer.address.toString(16)}`)
  await say(socket, 'mapped')
  if (pause) await new Promise((resolve) => setTimeout(resolve, 2 ** 31 - 1))
  console.log(`importer ${process.pid}: read, ${await shared.check(question)}`)
  shared.write(answer)
  await say(socket, 'written')
  console.log(`importer ${process.pid}: wrote the answer`)
  if (!stay) return
  while ((await hear(socket)) !== undefined);
  console.log(`importer ${process.pid}: the owner is gone, ${await shared.check(answer)} still`)
}
