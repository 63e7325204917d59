#!/usr/bin/env node
/** `npm run fuzz`: one campaign by name, or the list of them. */

interface Campaign {
  readonly title: string
  run(values: readonly string[]): Promise<number>
}

const campaigns: Readonly<Record<string, Campaign>> = {}

const usage = ['usage: npm run fuzz -- [CAMPAIGN] [OPTIONS]', '']
for (const [name, { title }] of Object.entries(campaigns)) usage.push(`  ${name.padEnd(12)} ${title}`)

const [name = '', ...values] = process.argv.slice(2)
const campaign = Object.hasOwn(campaigns, name) ? campaigns[name] : undefined
if (campaign === undefined) process.stdout.write(`${usage.join('\n')}\n`)
else process.exitCode = await campaign.run(values)
