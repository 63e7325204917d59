import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findSoftwareDeviceFrom } from '@shoal/ffi'
import { type Command, HelpRequest, UsageError } from '../command.js'
import { examine } from './examine.js'
import { type LibraryName, librariesByName } from './libraries.gen.js'
import { markdown, printable } from './print.js'

const usage = `usage: shoal doctor [options]

Reports libraries (where and how each was found, and its version), devices, the links between them, and missing parts
with their remedies. It starts nothing on a device.

  --require LIST   required libraries (default: driver), from
                   ${Object.keys(librariesByName).join(', ')}
  --verbose        also every place that was searched
  --json           the report as JSON
  --markdown       the report as Markdown, for an issue
  --help

Exit status: 0 if there is a device and all that is required; 1 if something is missing or does not work; 2 if the
command line is wrong.`

export const doctorCommand: Command = {
  usage,
  async run(commandLine) {
    const { json, verbose, markdown: asMarkdown, require } = readOptions(commandLine)
    if (json && (verbose || asMarkdown))
      throw new UsageError('--json already has everything: omit --verbose and --markdown')
    if (verbose && asMarkdown) throw new UsageError('--markdown is brief: omit --verbose')
    const required = readRequired(require)
    findSoftwareDeviceFrom(join(process.cwd(), 'package.json')) // npx runs the command line far from the program
    const report = examine(required)
    const ok = !report.findings.some(({ level }) => level === 'error')
    const words = (): string => (asMarkdown ? markdown(report, homedir()) : printable(report, verbose))
    console.log(json ? JSON.stringify({ ok, ...report }, undefined, 2) : words())
    return ok ? 0 : 1
  },
}

function readOptions(commandLine: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...commandLine],
      options: {
        json: { type: 'boolean', default: false },
        verbose: { type: 'boolean', default: false },
        markdown: { type: 'boolean', default: false },
        require: { type: 'string', default: '' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help === true) throw new HelpRequest()
    return values
  } catch (error) {
    if (error instanceof HelpRequest) throw error
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function readRequired(list: string): LibraryName[] {
  const names = list.split(',').map((name) => name.trim())
  return names
    .filter((name) => name !== '')
    .map((name) => {
      if (Object.hasOwn(librariesByName, name)) return name as LibraryName
      throw new UsageError(`--require: there is no library '${name}', only ${Object.keys(librariesByName).join(', ')}`)
    })
}
