// Runs the conformance suites of driver, runtime and NCCL under compute-sanitizer. The tool counts invalid accesses of
// kernels and memory that was not freed. Refused API calls do not count.
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const suite = fileURLToPath(new URL('node_modules/@shoal/conformance/dist/run.js', import.meta.url))
const jsonFile = process.argv[2] === '--json' ? process.argv[3] : undefined
const program = ['/usr/local/cuda/bin/compute-sanitizer', '/opt/cuda/bin/compute-sanitizer'].find((file) =>
  existsSync(file),
)

// These cases cannot pass under the tool. The first needs speed. The second reads the free memory, but all three runs
// use the device at once. The third delays a launch until later calls, but under the tool a launch blocks until it
// ends.
const without = [
  'gives everything back without blocking',
  'leaves no descriptor and no memory',
  'is brought to the device in the order of the stream',
].flatMap((name) => ['--without', name])
// The suites make wrong calls on purpose. The API refuses them, so they are not errors of memory. Some child processes
// are killed while they use memory, and in some a kernel makes an illegal write, so the tool does not follow them.
const options = ['--tool', 'memcheck', '--leak-check', 'full', '--report-api-errors', 'no', '--print-limit', '40']
options.push('--target-processes', 'application-only')
const runs = [
  ['driver', '--filter', 'driver', '--without', 'nvshmem', ...without],
  ['runtime', '--filter', 'runtime', '--without', 'driver', '--without', 'nvshmem'],
  ['nccl', '--filter', 'nccl', '--without', 'nccl matrix', '--without', 'nvshmem'],
]

/** Runs one suite to its end. Each run has its own port for its connections to the tool. */
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
    // Keeps the tool's lines, and the failed cases with their reasons.
    let isOfFailure = false
    const told = output.split('\n').filter((line) => {
      if (/^(ok|skip|FAIL|\d)/.test(line)) isOfFailure = line.startsWith('FAIL')
      return isOfFailure || line.startsWith('=========')
    })
    console.log(told.slice(0, 120).join('\n'))
  }
  return { ...result, cases, wasChecked, isClean }
}

// All run at once, because each takes many times as long as the suite alone.
const results = await Promise.all(runs.map(check))
if (jsonFile !== undefined) writeFileSync(jsonFile, `${JSON.stringify({ runs: results }, undefined, 2)}\n`)
process.exitCode = results.every(({ isClean }) => isClean) ? 0 : 1
