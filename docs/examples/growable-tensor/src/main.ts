import { Device, ShoalError } from '@shoal/driver'
import { CopyingTensor } from './copying.js'
import { GrowingTensor } from './growing.js'
import { type Options, readOptions, UsageError, usage } from './options.js'

process.exitCode = await main()

async function main(): Promise<number> {
  try {
    const options = readOptions(process.argv.slice(2))
    if (!options.help) return await run(options)
    console.log(usage)
    return 0
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof ShoalError)) throw error
    console.error(`growable-tensor: ${error.message}`)
    return 2
  }
}

async function run({ rows, width, batch }: Options): Promise<number> {
  const device = Device.get(0)
  console.log(`${device.name}${device.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'}`)
  console.log(`${rows} rows of ${width} f32, ${batch} at a time`)
  using stream = device.createStream()
  using growing = new GrowingTensor(device, width, rows)
  using copying = new CopyingTensor(device, width)
  const addressAtFirst = growing.address

  for (let done = 0; done < rows; done += batch) {
    for (let row = done; row < Math.min(done + batch, rows); row += 1) {
      growing.append(row, valueForRow(row), stream)
      await copying.append(row, valueForRow(row), stream)
    }
    // The rows are written while the next ones are prepared; here they are awaited to keep the queue short.
    await stream.synchronize()
  }

  const stayed = growing.address === addressAtFirst
  console.log(`grown in place: ${growing.growths} times, at most ${mebibytes(growing.bytesOfMemory)} at once`)
  console.log(`  address: ${hex(addressAtFirst)} at first, ${hex(growing.address)} now${stayed ? ' (the same)' : ''}`)
  console.log('  copied: 0 bytes')
  console.log(`grown by copying: ${copying.growths} times, at most ${mebibytes(copying.mostBytes)} at once`)
  console.log(`  copied: ${copying.bytesCopied} bytes`)

  const column = await growing.firstColumn(rows)
  const wrong = column.findIndex((value, row) => value !== valueForRow(row))
  if (stayed && wrong < 0) {
    console.log(`checked: all ${rows} rows are right`)
    return 0
  }
  console.error(wrong < 0 ? 'MISMATCH: the address changed' : `MISMATCH: row ${wrong} is ${column[wrong]}`)
  return 1
}

/** What row `row` holds: exact in f32. */
function valueForRow(row: number): number {
  return row % 65_536
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`
}

function hex(address: bigint): string {
  return `0x${address.toString(16)}`
}
