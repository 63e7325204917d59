// Runs the example gpt: compares its first steps with the reference and with PyTorch, then trains on all GPUs. gpt.mjs
// GPUS [--json FILE]
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const [gpus = '1', , jsonFile] = process.argv.slice(2)
const file = (path) => fileURLToPath(new URL(path, import.meta.url))
const scoped = file('node_modules/@shoal')
const program = (name) => join(scoped, 'example-gpt', 'dist', `${name}.js`)
const folder = mkdtempSync(join(tmpdir(), 'shoal-gpt-'))
const isSoftware = process.env.SHOAL_DEVICE === 'sim'
let failed = 0

/** Runs a program on `ranks` ranks. */
function onRanks(ranks, name, words = []) {
  const shoal = join(scoped, 'cli', 'bin', 'shoal.js')
  const run = [shoal, 'run', '-n', String(ranks), program(name), ...words]
  const { status, stdout, stderr } = spawnSync(process.execPath, run, { encoding: 'utf8', maxBuffer: 1 << 26 })
  process.stdout.write(stdout)
  if (status !== 0) {
    failed += 1
    process.stdout.write(`FAILED with ${status}: ${name} on ${ranks} ranks\n${stderr.slice(-4000)}`)
  }
  return stdout
}

/** Compares losses with those of the same model in PyTorch, in single and in double precision. */
function compareWithTorch(losses) {
  const words = [
    join(scoped, 'example-gpt', 'python', 'reference.py'),
    join(folder, 'model.json'),
    join(folder, 'model.bin'),
  ]
  const { status, stdout, stderr } = spawnSync('python3', words, { encoding: 'utf8', timeout: 240_000 })
  if (status === 3) {
    console.log(`not compared with PyTorch: ${stdout.trim()}`)
    return undefined
  }
  if (status !== 0) {
    failed += 1
    console.log(`FAILED: reference.py ended with ${status}\n${stderr.slice(-4000)}`)
    return undefined
  }
  const found = JSON.parse(stdout)
  for (const precision of ['float32', 'float64']) {
    const distance = Math.max(...found[precision].map((loss, step) => Math.abs(loss - losses[step])))
    // Adam first divides by numbers close to zero, so small differences grow.
    const isNear = found[precision].length === losses.length && distance < 1e-3
    if (!isNear) failed += 1
    console.log(
      `${isNear ? 'passed' : 'FAILED'}  largest distance to PyTorch ${found.version} on ${found.device} in ${precision}: ${distance.toExponential(1)}`,
    )
  }
  return found
}

const results = { losses: {} }
try {
  for (const ranks of Number(gpus) > 1 ? [1, 2] : [1]) {
    const words = ranks === 1 ? ['--write', folder] : []
    const output = onRanks(ranks, 'check', words)
    results.losses[ranks] = JSON.parse(/losses (\[.*\])/.exec(output)?.[1] ?? '[]')
  }
  results.torch = compareWithTorch(results.losses[1])

  // The model trains on JavaScript if the host has no other text.
  const texts = readdirSync(scoped).flatMap((name) => {
    const dist = join(scoped, name, 'dist')
    try {
      return readdirSync(dist)
        .filter((each) => each === 'index.js')
        .map((each) => join(dist, each))
    } catch {
      return [] // this package has no dist
    }
  })
  const text = join(folder, 'text.txt')
  const known = /[^\n -~]/g
  writeFileSync(text, texts.map((each) => readFileSync(each, 'utf8').replace(known, '?')).join('\n'))
  const steps = isSoftware ? ['--steps', '4', '--every', '2'] : ['--steps', '400', '--every', '100']
  const output = onRanks(gpus, 'main', [
    '--text',
    text,
    '--out',
    folder,
    ...steps,
    '--sample',
    isSoftware ? '20' : '300',
  ])
  const progress = [...output.matchAll(/ (\d+)\/\d+ {2}loss ([\d.]+) {2}([\d.]+) steps\/s/g)]
  results.training = progress.map(([, step, loss, perSecond]) => [step, loss, perSecond].map(Number))
  const [first, last] = [results.training[0]?.[1], results.training.at(-1)?.[1]]
  if (!isSoftware && !(last < first && last < 2)) {
    failed += 1
    console.log(`FAILED: the loss went from ${first} to ${last}`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
if (jsonFile !== undefined) writeFileSync(jsonFile, JSON.stringify(results))
process.exitCode = failed === 0 ? 0 : 1
