import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Device, DeviceBuffer, type Kernel } from '@shoal/driver'
import { initialWeights } from '@shoal/example-gpt/model'
import { definesFor, Network, program } from '@shoal/example-gpt/network'
import { temporaryFolder } from '../compile.js'
import { settingOf } from './setting.js'

/** The files for native/gpt.c. */
export interface Recorded {
  /** One list per rank. */
  readonly lists: readonly string[]
  readonly memory: string
  readonly code: string
}

/** Queues one step for each of `ranks` ranks on a device, and records what it launches. */
export async function record(device: Device, ranks: number): Promise<Recorded> {
  const { size, training, text } = settingOf(device.isSoftware)
  const { batch, seed, rate, decay, warmup, until } = training
  const network = await Network.create(device, size, { sequences: batch, text: text.length, losses: 4096 })
  const { major, minor } = device.computeCapability
  const architecture = `${device.isSoftware ? 'compute' : 'sm'}_${10 * major + minor}` as const
  const compiled = await program.compile({ architecture, defines: definesFor(size) })
  const stream = device.createStream({ nonBlocking: true })
  const { memory } = network
  memory.text.reinterpret('i32').copyFrom(text, { stream })
  memory.weights.copyFrom(initialWeights(size, network.layout, seed), { stream })
  const folder = temporaryFolder()
  const recorded = { memory: join(folder, 'gpt.memory'), code: join(folder, 'gpt.code') }
  writeFileSync(recorded.memory, new Uint8Array((await memory.lasting.toArray({ stream })).buffer))
  writeFileSync(recorded.code, compiled.image)

  const offset = (buffer: { readonly address: bigint }): bigint => buffer.address - memory.all.address
  const nameOf = ({ name }: Kernel): string => (name.includes('<') ? compiled.lowered(name) : name)
  const lists = Array.from({ length: ranks }, (_, rank) => {
    const lines = [
      `memory ${memory.all.byteLength}`,
      `loss ${offset(memory.losses)} ${offset(memory.step)} ${memory.losses.length}`,
    ]
    network.recorder = (kernel, grid, block, values) => {
      const sizes = [grid, block].flatMap(([x, y = 1, z = 1]) => [x, y, z])
      const words = values.map((value, index) => {
        if (value instanceof DeviceBuffer) return `p ${offset(value)}`
        return `v ${value === null ? 0 : bitsOf(value as number, kernel.signature[index] === 'f32')}`
      })
      lines.push(`launch ${nameOf(kernel)} ${sizes.join(' ')} ${values.length} ${words.join(' ')}`)
    }
    network.queuePick(stream, seed, rank * batch, text.length)
    network.queueForward(stream, batch)
    network.queueBackward(stream, ranks)
    lines.push(`all-reduce ${offset(memory.gradients)} ${memory.gradients.length}`)
    network.queueUpdate(stream, rate, decay, warmup, until)
    const file = join(folder, `gpt.${ranks}.${rank}.list`)
    writeFileSync(file, `${lines.join('\n')}\n`)
    return file
  })
  await stream.synchronize()
  stream.dispose()
  network.dispose()
  return { ...recorded, lists }
}

function bitsOf(value: number, isFloat: boolean): number {
  return isFloat ? (new Uint32Array(Float32Array.of(value).buffer)[0] as number) : value >>> 0
}
