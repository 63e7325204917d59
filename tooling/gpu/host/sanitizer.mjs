// Runs the conformance suites of driver, runtime and NCCL under compute-sanitizer, which counts invalid accesses of
// kernels, refused calls of the API apart, and memory that nobody gave back.
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const suite = fileURLToPath(new URL('node_modules/@shoal/conformance/dist/run.js', import.meta.url))
const jsonFile = process.argv[2] === '--json' ? process.argv[3] : undefined
const program = ['/usr/local/cuda/bin/compute-sanitizer', '/opt/cuda/bin/compute-sanitizer'].find((file) =>
  existsSync(file),
)

// Under the tool nothing is fast, which one case asks for; the three run at once, where another one asks what memory is
// free; and a launch waits for its end, which a third one holds up until later calls were made.
const without = [
  'gives everything back without blocking',
  'leaves no descriptor and no memory',
  'is brought to the device in the order of the stream',
].flatMap((name) => ['--without', name])
// What the suites ask wrongly on purpose is refused by the API, and is no error of memory. Of their child processes
// some are killed with memory in use, and some have a kernel write where it may not.
const options = ['--tool', 'memcheck', '--leak-check', 'full', '--report-api-errors', 'no', '--print-limit', '40']
options.push('--target-processes', 'application-only')
const runs = [
  ['driver', '--filter', 'driver', '--without', 'nvshmem', ...without],
  ['runtime', '--filter', 'runtime', '--without', 'driver', '--without', 'nvshmem'],
  ['nccl', '--filter', 'nccl', '--without', 'nccl matrix', '--without', 'nvshmem'],
]

/** Runs one to its end; each has connections of its own to the tool. */
async function check([name, ...which], index) {
  const port = ['--port', String(49_152 + 100 * index)]
  const child = spawn(program ?? 'compute-sanitizer', [...options, ...port, process.execPath, suite, ...which])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const [status, signal] = await new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (...end) => resolve(end))
  })
  const errors = Number(/ERROR SUMMARY: (\d+) errors?/.exec(output)?.[1] ?? Number.NaN)
  const leaks = /LEAK SUMMARY: (\d+) bytes leaked in (\d+) allocations?/.exec(output)
  const result = { name, status, signal, errors, leakedBytes: Number(leaks?.[1] ?? 0), leaks: Number(leaks?.[2] ?? 0) }
  const wasChecked = output.includes('LEAK SUMMARY')
  const cases = /^\d+ passed, \d+ failed, \d+ skipped$/m.exec(output)?.[0] ?? 'the suite did not come to its end'
  console.log(`${name}: ${cases}; ${errors} errors, ${result.leaks} allocations of ${result.leakedBytes} bytes leaked`)
  const isClean = status === 0 && errors === 0 && wasChecked && result.leaks === 0
  if (!isClean) {
    // What the tool says, and of the cases those that failed, with their reasons.
    let isOfFailure = false
    const told = output.split('\n').filter((line) => {
      if (/^(ok|skip|FAIL|\d)/.test(line)) isOfFailure = line.startsWith('FAIL')
      return isOfFailure || line.startsWith('=========')
    })
    console.log(told.slice(0, 120).join('\n'))
  }
  return { ...result, cases, wasChecked, isClean }
}

// At once, as each takes many times as long as the suite alone.
const results = await Promise.all(runs.map(check))
if (jsonFile !== undefined) writeFileSync(jsonFile, `${JSON.stringify({ runs: results }, undefined, 2)}\n`)
process.exitCode = results.every(({ isClean }) => isClean) ? 0 : 1
