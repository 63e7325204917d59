#!/usr/bin/env node
// `pnpm build:platforms`: builds the native files of other platforms, if their compilers are installed.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { say } from './install.mjs'
import { nativeFiles, platforms } from './manifests.mjs'
import { publishablePackages } from './publishable.mjs'
import { run, runMain } from './workspace.mjs'

await runMain(() => {
  const packages = publishablePackages()
  let status = 0
  for (const [platform, { compiler, install }] of Object.entries(platforms)) {
    if (platform === `${process.platform}-${process.arch}`) continue
    if (spawnSync(compiler, ['--version']).error) {
      say(`${platform} is left out: there is no ${compiler} here. On Debian and Ubuntu: apt-get install ${install}`)
      continue
    }
    for (const name of Object.keys(nativeFiles)) {
      const folder = join(packages.get(name).path, 'native')
      say(`building ${name} for ${platform}`)
      const variables = [`CXX=${compiler}`, `BUILD=../build/${platform}`]
      status ||= run('make', ['-s', '-j', '2', '-C', folder, ...variables])
    }
  }
  return status
})
