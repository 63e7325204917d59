#!/usr/bin/env node
/** `npm run fuzz`: runs the campaign that the first argument names. Default: the model. */
import { parseArgs } from 'node:util'
import { readOptions, runCampaign, usage } from './model/campaign.js'
import { brokenPtx } from './ptx.js'
import { rankDeaths } from './ranks/rankDeaths.js'
import { wrongMessages } from './receive/campaign.js'

interface Campaign {
  readonly title: string
  /** @returns the exit status */
  run(values: readonly string[]): Promise<number>
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const campaigns: Readonly<Record<string, Campaign>> = {
  model: {
    title: 'random calls, compared with a model',
    async run(values) {
      const options = readOptions(values)
      if (typeof options === 'string') {
        say(`${options}\n\n${usage}`)
        return 2
      }
      say(`seed ${options.seed}`)
      const { steps, failure } = await runCampaign({ ...options, say })
      if (failure !== undefined) return 1
      say(`${steps} steps, nothing found`)
      return 0
    },
  },
  arguments: {
    title: 'wrong arguments for every function: --packages driver,nccl',
    async run(values) {
      const given = parseArgs({ args: [...values], options: { packages: { type: 'string' } } }).values
      // The sweep loads the TypeScript compiler to read declarations, which the other campaigns do not need.
      const { runArgumentSweep } = await import('./arguments/index.js')
      const packages = given.packages?.split(',')
      const result = await runArgumentSweep(packages === undefined ? {} : { packages })
      for (const line of [...result.accepted, ...result.failures, ...result.unnamed]) say(line)
      const { asked, refused, typed, named, accepted, failures } = result
      say(`${asked} asked, ${refused} refused, ${typed} typed, ${named} name function and parameter`)
      return accepted.length + failures.length === 0 ? 0 : 1
    },
  },
  ranks: rankDeaths,
  receive: wrongMessages,
  ptx: brokenPtx,
}

const [first = '', ...rest] = process.argv.slice(2)
const isNamed = Object.hasOwn(campaigns, first)
if (first === '--help' || (first !== '' && !isNamed && !first.startsWith('--'))) {
  say(`${usage}\n\ncampaigns`)
  for (const [name, { title }] of Object.entries(campaigns)) say(`  ${name.padEnd(18)} ${title}`)
  process.exitCode = first === '--help' ? 0 : 2
} else {
  const campaign = campaigns[isNamed ? first : 'model'] as Campaign
  process.exitCode = await campaign.run(isNamed ? rest : process.argv.slice(2))
}
