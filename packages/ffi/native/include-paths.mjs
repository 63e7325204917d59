// Prints the -I flags of the Node-API headers. The headers come as npm packages, so no Node headers need to be
// installed.
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)
const folderOf = (name) => dirname(require.resolve(`${name}/package.json`))
process.stdout.write(`-isystem ${join(folderOf('node-api-headers'), 'include')} -isystem ${folderOf('node-addon-api')}`)
