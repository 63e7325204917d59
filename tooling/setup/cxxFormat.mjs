#!/usr/bin/env node
// Checks that C and C++ sources, all or the named ones, are formatted by `.clang-format` and have at most 120 columns.
// `--write` formats them. The first run fetches the pinned version of clang-format from npm.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fetchTools } from './fetchTools.mjs'
import { capture, root, run, runMain, SetupError } from './workspace.mjs'

const columns = 120
/** The formatter skips generated sources and the headers of other projects. */
const foreign = /\.gen\.h$|^tooling\/bindgen\/include\//

await runMain(() => {
  const isWriting = process.argv.includes('--write')
  const named = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
  const files = named.length > 0 ? named : sources()
  const style = `--style=file:${join(root, '.clang-format')}`
  const status = run(clangFormat(), [
    style,
    ...(isWriting ? ['-i'] : ['--dry-run', '--Werror', '--ferror-limit=1']),
    ...files,
  ])
  const long = files.flatMap((file) => {
    const lines = readFileSync(resolve(root, file), 'utf8').split('\n')
    return lines.flatMap((line, index) => ([...line].length > columns ? [`${file}:${index + 1}`] : []))
  })
  for (const place of long) process.stderr.write(`${place}: more than ${columns} columns\n`)
  if (status === 0 && long.length === 0) return 0
  process.stderr.write(
    'C and C++ sources are not formatted: `pnpm format` does it; shorten by hand what it cannot break.\n',
  )
  return 1
})

function sources() {
  const listed = capture('git', ['ls-files', '*.cc', '*.cpp', '*.c', '*.h']).split('\n')
  return listed.filter((file) => file !== '' && !foreign.test(file))
}

function clangFormat() {
  const name = { x64: 'linux-x64', arm64: 'linux-arm64' }[process.arch]
  if (process.platform !== 'linux' || name === undefined)
    throw new SetupError(
      `There is no clang-format for ${process.platform} on ${process.arch}: C and C++ are not checked.`,
    )
  const tools = fetchTools('clang-format', { 'clang-format-node': '3.0.7' })
  return join(tools, 'node_modules/clang-format-node/bin', `cfn-${name}`, 'clang-format')
}
