#!/usr/bin/env node
/** Compares the answers of the safe packages with those of a C++ program, case by case. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Device } from '@shoal/driver'
import { Device as RuntimeDevice } from '@shoal/runtime'
import { Random } from '../support/random.js'
import { digestsOf, referenceAnswers, referenceRun } from './referenceRun.js'

const usage = `node run.js [--json FILE] [--filter TEXT]
  --json FILE     write the report to FILE
  --filter TEXT   ask only cases whose "part: name" contains TEXT
  --answers FILE  write what the program in C++ answers to each case to FILE, and compare nothing
  --digests FILE  the same as digests, as test/recorded keeps them
Needs g++ and cuda.h (CUDA_HOME, or /usr/local/cuda). With SHOAL_EXPECT_GPU=1 it fails where there is no GPU.
SHOAL_SEED=N repeats the texels and coordinates of a run.`

function main(): number {
  const { values } = parseArgs({
    options: {
      json: { type: 'string' },
      filter: { type: 'string' },
      answers: { type: 'string' },
      digests: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) {
    console.log(usage)
    return 0
  }
  const device = Device.get(0)
  const packages = { driver: device, runtime: RuntimeDevice.get(0) }
  if (process.env['SHOAL_EXPECT_GPU'] === '1' && device.isSoftware) {
    console.log('FAIL: a GPU was expected (SHOAL_EXPECT_GPU=1) and none is in use')
    return 1
  }
  const seed = Number(process.env['SHOAL_SEED'] ?? Math.floor(Math.random() * 2 ** 32))
  const folder = mkdtempSync(join(tmpdir(), 'shoal-reference-'))
  try {
    if (values.answers !== undefined || values.digests !== undefined) {
      const answers = referenceAnswers(new Random(seed), folder)
      const write = (file: string | undefined, found: object): void => {
        const told = { device: device.name, seed, answers: found }
        if (file !== undefined) writeFileSync(file, `${JSON.stringify(told, undefined, 1)}\n`)
      }
      write(values.answers, answers)
      write(values.digests, digestsOf(answers))
      return 0
    }
    const report = referenceRun(packages, new Random(seed), folder, values.filter)
    for (const line of report.lines) console.log(line)
    if (values.json !== undefined)
      writeFileSync(values.json, `${JSON.stringify({ device: device.name, seed, ...report.data }, undefined, 2)}\n`)
    if (!report.ok) console.log(`repeat with SHOAL_SEED=${seed}`)
    return report.ok ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

process.exitCode = main()
