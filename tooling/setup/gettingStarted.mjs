// Follows the page for beginners to the letter: makes its files, runs its commands, and compares the output.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { captureBeside, root, SetupError } from './workspace.mjs'

const page = join(root, 'docs/guides/getting-started.md')

/** Reads the commands, the files by name and the last command's output from the blocks of the page's first section. */
export function steps(text = readFileSync(page, 'utf8')) {
  const section = text.slice(text.indexOf('\n## A first program'), text.indexOf('\n## What you need'))
  const blocks = [...section.matchAll(/^```(\w+)(?: (\S+))?\n([\s\S]*?)^```$/gm)]
  const textOf = (wanted) => blocks.map(([, language, , text]) => (language === wanted ? text : '')).join('')
  return {
    commands: textOf('sh').trim().split('\n'),
    files: blocks.filter(([, , name]) => name !== undefined).map(([, , name, text]) => ({ name, text })),
    output: textOf('text'),
  }
}

/** Follows the page in an empty folder, with the packages of `registry`. Returns what went wrong. */
export async function gettingStartedProblems(registry, env) {
  const { commands, files, output } = steps()
  const scratch = mkdtempSync(join(tmpdir(), 'shoal-first-'))
  try {
    const folder = join(scratch, 'empty')
    mkdirSync(folder)
    for (const { name, text } of files) writeFileSync(join(folder, name), text)
    const npmrc = join(scratch, 'npmrc')
    writeFileSync(
      npmrc,
      `@shoal:registry=${registry.url}\nprefer-offline=true\naudit=false\nfund=false\nloglevel=error\n`,
    )
    // A beginner has set no variables. The page must name each variable that is needed.
    const bare = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('SHOAL_')))
    const options = { cwd: folder, env: { ...bare, npm_config_userconfig: npmrc } }
    let printed = ''
    for (const command of commands) printed = await captureBeside('bash', ['-c', command], options)
    return printed === output ? [] : [`${page} says that it prints ${output}and it prints ${printed}`]
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    return [error.message]
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
