#!/usr/bin/env node
import { readOptions, runCampaign, usage } from './model/campaign.js'
/** `npm run fuzz`: one campaign by name, the model when none is named. */
import { rankDeaths } from './ranks/rankDeaths.js'

interface Campaign {
  readonly title: string
  /** @returns the exit status. */
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
  ranks: rankDeaths,
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
