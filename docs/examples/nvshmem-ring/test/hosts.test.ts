import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const shoal = fileURLToPath(new URL('../../../../packages/cli/bin/shoal.js', import.meta.url))
const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))

/** Runs two PEs where `mounts` changed the file systems; those go with the namespace. */
function run(mounts: string) {
  const command = [process.execPath, shoal, 'run', '-n', '2', main]
  return spawnSync('unshare', ['--mount', 'sh', '-c', `${mounts} && exec "$@"`, 'sh', ...command], {
    env: { ...process.env, SHOAL_DEVICE: 'sim', HOME: '/mnt' },
    encoding: 'utf8',
    timeout: 300_000,
  })
}

/** Nothing below the folder is hidden: this project itself may lie there. */
const readOnly = (folder: string): string => `mount --rbind ${folder} ${folder} && mount -o remount,bind,ro ${folder}`

test.for([
  ['no /dev/shm', 'umount -l /dev/shm'],
  ['a full /dev/shm', 'mount -t tmpfs -o size=4k tmpfs /dev/shm'],
  ['a home that can only be read', readOnly('/mnt')],
  ['no file system but for reading', ['/dev/shm', '/tmp', '/mnt'].map(readOnly).join(' && ')],
])('processes of the software device share memory with %s', ([, mounts], { skip }) => {
  if (spawnSync('unshare', ['--mount', 'true']).status !== 0)
    return skip('file systems cannot be mounted here: not root')
  if (mounts?.startsWith('umount') && !readFileSync('/proc/mounts', 'utf8').includes(' /dev/shm '))
    return skip('/dev/shm is no file system of its own here')
  const { status, stdout, stderr } = run(mounts as string)
  expect(stdout.match(/20014 elements around the ring, 0 wrong/g), stdout + stderr).toHaveLength(2)
  expect(status).toBe(0)
})
